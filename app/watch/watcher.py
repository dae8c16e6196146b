"""The watcher: finds recordings in folders, waits until each is complete, and has some transcribed at a time.

Events of the file system only say where to search; what is there and what is known of it decide. So a lost
event is made up for by the next search, and nothing depends on the order of events.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import structlog
import watchfiles

from app.client.jobs import JobClient
from app.common.concurrency import Wakeup
from app.common.errors import WhisperfleetError
from app.watch.recording import Recording, RunResult, Tools
from app.watch.report import Report, shown
from app.watch.rules import Rules
from app.watch.scan import Scan
from app.watch.state import FAILED, Entry, State, Version
from app.watch.streams import HeaderReader, SoundExtractor

FILES_AT_ONCE = 10  # keeps all workers busy, and bounds the recordings that the service stores
SEARCH_S = 3600.0  # between two searches of all folders, for events that were lost
FALLBACK_POLL_S = 60.0  # the same where events cannot be had
_RETRY_S = 60.0  # after which a recording with trouble around it is tried again
_ROOT_S = 5.0  # between two looks whether a folder is there
_ABSENT = (0, 0)  # stands for a folder that was there
_BATCH = 500  # about so many files are passed on by a search at a time

log = structlog.get_logger(__name__)


class Watcher:
    """Transcribes the recordings in some folders until it is cancelled."""

    def __init__(
        self,
        roots: Sequence[Path],
        rules: Rules,
        state: State,
        client: JobClient,
        report: Report,
        *,
        sound_dir: Path,
        settle_s: float,
        poll_s: float | None = None,
    ) -> None:
        """`sound_dir` is for files of this watcher alone. A file is complete if it stays so for `settle_s`.
        With `poll_s`, the folders are searched so often, without events. Both in s.
        """
        self._roots = roots
        self._report = report
        self._settle_s = settle_s
        self._polls = poll_s is not None
        self._search_s = poll_s or SEARCH_S
        self._headers = HeaderReader()
        self._tools = Tools(
            rules=rules,
            state=state,
            client=client,
            headers=self._headers,
            sound=SoundExtractor(sound_dir),
            report=report,
            search_again=self.search_again,
            search_soon=self._search_soon,
        )
        self._growing: dict[Path, tuple[Version, float]] = {}  # and since when the file is like that
        self._ready: asyncio.Queue[tuple[Path, Version]] = asyncio.Queue()
        self._queued: set[Path] = set()  # in `_ready`
        self._running: list[Recording] = []
        self._dirty: set[Path] = set()  # folders to search
        self._search = Wakeup()
        self._waiting: list[asyncio.Future[None]] = []  # for a search of everything
        self._later: set[Path] = set()  # folders with recordings that are tried again
        self._stopped = threading.Event()

    async def run(self) -> None:
        """Watch the folders. Ends only when it is cancelled; the jobs on their way stay at the service."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._delete_left_jobs())
                group.create_task(self._search_forever())
                group.create_task(self._settle_forever())
                group.create_task(self._retry_forever())
                for _ in range(FILES_AT_ONCE):
                    group.create_task(self._transcribe_forever())
                for root in self._roots:
                    group.create_task(self._follow(root))
        finally:
            self._stopped.set()
            await self._headers.close()

    async def search_again(self) -> None:
        """Search all folders, and return when that is done."""
        done = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self._search.set()
        await done

    async def _delete_left_jobs(self) -> None:
        """Delete the jobs of recordings that were done just before this program was killed."""
        with suppress(WhisperfleetError):
            for entry in await asyncio.to_thread(self._tools.state.done_with_job):
                await self._tools.client.delete(entry.job)
                await asyncio.to_thread(self._tools.state.put, entry.without_job())

    async def _follow(self, root: Path) -> None:
        """Keep an eye on a folder: on its files by events, and on whether it is there at all."""
        events: Events | None = None
        identity: tuple[int, int] | None = None
        try:
            while True:
                found = await asyncio.to_thread(_identity, root)
                if found is None:
                    self._report.say_once(f"root {root}", f"{shown(root)} is not there: waiting for it")
                elif found != identity:
                    if identity == _ABSENT:
                        self._report.say(f"{shown(root)} is there again")
                    elif identity is not None:
                        self._report.say(f"{shown(root)} is another folder now, as after an unmount")
                    self._report.solved(f"root {root}")
                    self._search_soon([root])
                if found != identity or (events is not None and events.failed):
                    if events is not None:
                        events.stop()
                    watches = found is not None and not self._polls
                    events = Events(root, self._search_soon, self._no_events) if watches else None
                identity = found or (identity and _ABSENT)
                await asyncio.sleep(_ROOT_S)
        finally:
            if events is not None:
                events.stop()

    def _no_events(self, root: Path, error: Exception) -> None:
        self._search_s = min(self._search_s, FALLBACK_POLL_S)
        self._search.set()
        if "decode path" in str(error):
            cure = "The name of that file is not UTF-8: rename it."
        else:
            cure = "With many folders, raise fs.inotify.max_user_watches."
        self._report.say_once(
            f"events {root}",
            f"changes in {shown(root)} cannot be followed ({error}): all of it is searched each "
            f"{self._search_s:g} s. {cure}",
        )

    def _search_soon(self, folders: Iterable[Path]) -> None:
        self._dirty.update(folders)
        self._search.set()

    async def _search_forever(self) -> None:
        all_searched_at = float("-inf")
        while True:
            await self._search.wait(max(0.0, all_searched_at + self._search_s - time.monotonic()))
            waiting, self._waiting = self._waiting, []
            folders, self._dirty = self._dirty, set()
            if waiting or time.monotonic() >= all_searched_at + self._search_s:
                all_searched_at = time.monotonic()
                folders = set(self._roots)
            for root in self._roots:
                for folder in _topmost(folder for folder in folders if folder.is_relative_to(root)):
                    await asyncio.to_thread(self._search_folder, root, folder, asyncio.get_running_loop())
            for done in waiting:
                if not done.done():
                    done.set_result(None)

    def _search_folder(self, root: Path, folder: Path, loop: asyncio.AbstractEventLoop) -> None:
        """Runs in a thread."""
        scan = Scan(root, self._tools.rules, self._tools.writing.__contains__)
        batch: list[tuple[Path, Version]] = []
        digest = self._tools.rules.digest
        try:
            for files in scan.files(folder):
                final = self._tools.state.final(files, digest)
                batch += [(Path(path), version) for path, version in files.items() if path not in final]
                if self._stopped.is_set():
                    return
                if len(batch) >= _BATCH:
                    loop.call_soon_threadsafe(self._found, batch)
                    batch = []
        except WhisperfleetError as error:
            loop.call_soon_threadsafe(self._report.say_once, "state", f"{error.message}. It is tried again.")
        loop.call_soon_threadsafe(self._found, batch)
        for unreadable, fault in scan.unreadable.items():
            notice = f"{shown(Path(unreadable))} cannot be searched: {fault.strerror}"
            loop.call_soon_threadsafe(self._report.say_once, f"search {unreadable}", notice)

    def _found(self, files: Iterable[tuple[Path, Version]]) -> None:
        """Wait until each of these files is complete, unless it is on its way already."""
        for path, version in files:
            if self._is_on_its_way(path, version) or path in self._queued:
                continue
            if any(recording.path == path for recording in self._running):
                continue
            known = self._growing.get(path)
            if known is None or known[0] != version:
                self._growing[path] = (version, time.monotonic())

    def _is_on_its_way(self, path: Path, version: Version) -> bool:
        """Whether a recording in this version is being transcribed. It gets to know this path of it."""
        on_its_way = [recording for recording in self._running if recording.version == version]
        for recording in on_its_way:
            if recording.path != path:
                recording.seen_at = path  # it was renamed, or it has two names
        return bool(on_its_way)

    async def _settle_forever(self) -> None:
        pause_s = min(1.0, self._settle_s / 4)
        while True:
            await asyncio.sleep(pause_s)
            now = time.monotonic()
            due = [path for path, (_, since) in self._growing.items() if now - since >= self._settle_s]
            versions = await asyncio.to_thread(_versions, due) if due else []
            for path, version in zip(due, versions, strict=True):
                if path not in self._growing:
                    continue
                before, _ = self._growing.pop(path)
                if version == before:
                    self._ready.put_nowait((path, version))
                    self._queued.add(path)
                elif version is not None:
                    self._growing[path] = (version, now)

    async def _retry_forever(self) -> None:
        while True:
            await asyncio.sleep(_RETRY_S)
            folders, self._later = self._later, set()
            self._search_soon(folders)
            # Those that are not there, such as a mount below a watched folder, are looked at again.
            absent = await asyncio.to_thread(lambda folders: {f for f in folders if not f.is_dir()}, folders)
            self._later |= absent

    async def _transcribe_forever(self) -> None:
        while True:
            path, version = await self._ready.get()
            self._queued.discard(path)
            if self._is_on_its_way(path, version):
                continue  # under another name: what it is is clear when that one has ended
            recording = Recording(path, version, self._tools)
            self._running.append(recording)
            await self._process(recording)

    async def _process(self, recording: Recording) -> None:
        outcome = RunResult.FINISHED
        try:
            outcome = await recording.run()
        except Exception as error:  # one recording must not end the watch
            log.exception("a recording failed unexpectedly", path=shown(recording.path))
            self._report.failed(recording.path, f"{type(error).__name__}: {error}.")
            failed = Entry(recording.path, recording.version, FAILED, self._tools.rules.digest)
            with suppress(WhisperfleetError):
                await asyncio.to_thread(self._tools.state.put, failed)
        finally:
            self._running = [other for other in self._running if other is not recording]
        folders = [path.parent for path in (recording.path, recording.seen_at) if path is not None]
        if outcome is RunResult.LATER:
            self._later.update(folders)
        elif outcome is RunResult.CHANGED or recording.seen_at is not None:
            self._search_soon(folders)


class Events:
    """The events of a folder and of all below it, from a thread of their own."""

    def __init__(
        self,
        root: Path,
        changed: Callable[[Iterable[Path]], None],
        on_failure: Callable[[Path, Exception], None],
    ) -> None:
        """The event loop calls `changed` with the folders to search, and `on_failure` with the root and the
        error that ends this.
        """
        self.failed = False
        self._loop = asyncio.get_running_loop()
        self._root = root
        self._changed = changed
        self._on_failure = on_failure
        self._stop = threading.Event()
        # A daemon: the interpreter's exit must not wait for a mount that does not answer.
        threading.Thread(target=self._run, name="events", daemon=True).start()

    def stop(self) -> None:
        """End the thread, soon."""
        self._stop.set()

    def _run(self) -> None:
        try:
            first = True
            for changes in watchfiles.watch(
                self._root,
                watch_filter=None,
                stop_event=self._stop,
                rust_timeout=1000,
                yield_on_timeout=True,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                folders = {Path(path).parent for _, path in changes}
                folders |= {Path(path) for kind, path in changes if kind == watchfiles.Change.added}
                # What came before the events is found by a search.
                self._call(self._changed, [self._root] if first else folders)
                first = False
        except Exception as error:  # watchfiles has errors of its own; any of them means no events
            self.failed = True
            if not self._stop.is_set():
                self._call(self._on_failure, self._root, error)

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function, *arguments)


def _identity(root: Path) -> tuple[int, int] | None:
    """What tells a folder from another one at its place; None if there is none that can be read."""
    try:
        status = root.stat()
        next(root.iterdir(), None)  # raises an error if it cannot be read
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _topmost(folders: Iterable[Path]) -> list[Path]:
    """Some folders without those that are below others of them."""
    chosen = set(folders)
    return sorted(folder for folder in chosen if chosen.isdisjoint(folder.parents))


def _versions(paths: Iterable[Path]) -> list[Version | None]:
    """The versions of files; None for each that cannot be read."""
    versions: list[Version | None] = []
    for path in paths:
        try:
            versions.append(Version.of(path.stat()))
        except OSError:
            versions.append(None)
    return versions
