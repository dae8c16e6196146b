"""A folder of recordings, and watchers of it with a fake service."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from app.common.options import Options
from app.watch.rules import Rules
from app.watch.state import State
from app.watch.watcher import Watcher
from tests.watch.fake_jobs import FakeJobs, Lines

SETTLE_S = 0.08


class Watched:
    """A folder that is watched, now and then."""

    def __init__(self, folder: Path, database: Path) -> None:
        self.folder = folder
        self.jobs = FakeJobs()
        self.report = Lines()
        self._database = database

    @contextlib.asynccontextmanager
    async def watch(
        self, poll_s: float | None = None, settle_s: float = SETTLE_S, **rules: Any
    ) -> AsyncIterator[Watcher]:
        """Watch it until the end of the block."""
        chosen = Rules(options=Options(**rules.pop("options", {})), **rules)
        state = State(self._database, chosen.kind)
        watching = Watcher(
            [self.folder],
            chosen,
            state,
            self.jobs,
            self.report,
            sound_dir=self._database.with_suffix(".sound"),
            settle_s=settle_s,
            poll_s=poll_s,
        )
        task = asyncio.create_task(watching.run())
        try:
            yield watching
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            state.close()

    def add(self, name: str, content: str = "") -> Path:
        """A recording, with other content than all others unless that is given."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content or name)
        return path

    def subtitles(self) -> dict[str, str]:
        """The contents of all subtitles."""
        paths = self.folder.rglob("*.srt")
        return {str(path.relative_to(self.folder)): path.read_text("latin-1") for path in paths}


async def until(what: Callable[[], Any], timeout_s: float = 10.0) -> None:
    """Wait until `what` returns something true."""
    async with asyncio.timeout(timeout_s):
        while not what():  # noqa: ASYNC110 (files and threads set no events)
            await asyncio.sleep(0.01)


async def until_stored(watching: Watcher, path: Path) -> None:
    """Wait until the watcher has stored the job of a recording, and would find it after a kill."""
    await until(lambda: (entry := watching._tools.state.get(path)) and entry.job)


async def idle(watching: Watcher) -> None:
    """Wait until a search finds nothing to do."""
    for _ in range(2):
        await watching.search_again()
        await until(lambda: not (watching._growing or watching._queued or watching._running))


async def written(watched: Watched, watching: Watcher, count: int = 1) -> None:
    """Wait until there are at least as many subtitles, and nothing is left to do."""
    await until(lambda: len(watched.subtitles()) >= count)
    await idle(watching)
