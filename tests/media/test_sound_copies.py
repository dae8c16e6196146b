"""The cache of copies: one making for all, a budget, and no broken copy."""

import asyncio
import math
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from app.common.errors import AudioNotKept, InvalidInput, NotReady
from app.media.sound_copies import SoundCopies, remove_leftover_copies
from tests.event_loop import until
from workers.messages import TrackChoice

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]

ONE, TWO, THREE = ("1" * 32, "2" * 32, "3" * 32)


class FakeEncoder:
    """Writes 100 bytes: the name of the source, and the span. Goes on when it may."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.started: list[str] = []
        self.cancelled: list[str] = []
        self.error: Exception | None = None
        self.size = 100

    async def encode(
        self,
        source: Path,
        target: Path,
        form: str,
        *,
        track: TrackChoice = None,
        start_s: float = 0.0,
        end_s: float = math.inf,
    ) -> None:
        await asyncio.to_thread(target.write_bytes, b"half")
        self.started.append(source.name)
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cancelled.append(source.name)
            raise
        if self.error is not None:
            raise self.error
        content = f"{source.name} {form} {track} {start_s} {end_s}".encode().ljust(self.size)
        await asyncio.to_thread(target.write_bytes, content)


@pytest.fixture
def encoder() -> FakeEncoder:
    return FakeEncoder()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "copies"
    folder.mkdir()
    return folder


@pytest.fixture
def copies(tmp_path: Path, folder: Path, encoder: FakeEncoder) -> SoundCopies:
    """A cache for two copies and a half."""
    return SoundCopies(tmp_path / "uploads", folder, 250, encoder)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def use(copies: SoundCopies, recording: str, form: str = "flac", **options: object) -> str:
    async with copies.hold(recording, form, **options) as path:
        return path.read_text().rstrip()


async def test_a_copy_is_made_once(copies, encoder, folder):
    for _ in range(3):
        assert await use(copies, ONE) == f"{ONE} flac None 0.0 inf"
    assert encoder.started == [ONE]
    assert names(folder) == [f"{ONE}.flac"]


async def test_concurrent_requests_share_one_making(copies, encoder, folder):
    encoder.may_end.clear()
    requests = [asyncio.create_task(use(copies, ONE)) for _ in range(5)]
    await until(lambda: encoder.started)
    assert [name[-5:] for name in names(folder)] == [".part"], "an incomplete copy never has the name"
    requests[0].cancel()  # the one that began it
    await asyncio.sleep(0)
    encoder.may_end.set()
    done = await asyncio.gather(*requests, return_exceptions=True)
    assert isinstance(done[0], asyncio.CancelledError)
    assert done[1:] == [f"{ONE} flac None 0.0 inf"] * 4
    assert encoder.started == [ONE]


async def test_a_copy_is_completed_for_a_client_that_gave_up(copies, encoder, folder):
    encoder.may_end.clear()
    request = asyncio.create_task(use(copies, ONE))
    await until(lambda: encoder.started)
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    encoder.may_end.set()
    await until(lambda: names(folder) == [f"{ONE}.flac"])
    assert await use(copies, ONE)
    assert encoder.started == [ONE]


async def test_the_least_recently_used_copy_goes_first(copies, encoder, folder):
    for recording in (ONE, TWO, ONE, THREE):
        await use(copies, recording)
    assert names(folder) == [f"{ONE}.flac", f"{THREE}.flac"]
    await use(copies, TWO)
    assert encoder.started == [ONE, TWO, THREE, TWO]
    assert names(folder) == [f"{TWO}.flac", f"{THREE}.flac"]


async def test_a_copy_in_use_stays_until_its_last_response_ends(copies, folder):
    async with AsyncExitStack() as held:
        for recording in (ONE, TWO, THREE):
            await held.enter_async_context(copies.hold(recording, "flac"))
        async with copies.hold(ONE, "flac"):
            assert len(names(folder)) == 3
        assert len(names(folder)) == 3
    assert len(names(folder)) == 2


async def test_a_copy_over_the_budget_leaves_the_others(copies, encoder, folder):
    await use(copies, ONE)
    encoder.size = 300
    assert await use(copies, TWO)
    assert names(folder) == [f"{ONE}.flac"]


async def test_without_a_budget_nothing_stays(tmp_path, folder, encoder):
    copies = SoundCopies(tmp_path, folder, 0, encoder)
    assert await use(copies, ONE)
    assert names(folder) == []
    assert await use(copies, ONE)
    assert encoder.started == [ONE, ONE]


async def test_ogg_and_spans_are_made_from_the_flac_copy(copies, folder):
    assert await use(copies, ONE, "ogg", track=1) == f"{ONE} ogg 1 0.0 inf"
    await use(copies, TWO, track=1)
    assert await use(copies, TWO, "ogg", track=1) == f"{TWO}.flac ogg None 0.0 inf", "it has one track"
    sources = {TWO: f"{TWO}.flac flac None 1.5 2.5", THREE: f"{THREE} flac 1 1.5 2.5"}
    for recording, expected in sources.items():
        assert await use(copies, recording, track=1, span=(1.5, 2.5)) == expected


async def test_readers_of_equal_spans_share_a_file(copies, encoder, folder):
    encoder.may_end.clear()
    async with AsyncExitStack() as held:

        def read(span):
            return asyncio.create_task(held.enter_async_context(copies.hold(ONE, "flac", span=span)))

        reading = [read((1.0, 2.0)) for _ in range(12)] + [read((1.0, 3.0))]
        await until(lambda: len(encoder.started) == 2)
        reading.pop(0).cancel()  # the one that began it
        encoder.may_end.set()
        paths = await asyncio.gather(*reading)
        assert len(set(paths)) == len(names(folder)) == 2
        assert {path.suffix for path in paths} == {".part"}, "a restart removes them"
    assert encoder.started == [ONE, ONE]
    await copies.remove(ONE)
    assert names(folder) == []


async def test_spans_stay_within_the_budget_and_a_number(tmp_path, copies, encoder, folder):
    await use(copies, ONE)
    await use(copies, ONE, span=(0.0, 1.0))
    await use(copies, ONE, span=(0.0, 2.0))
    assert sorted(path.suffix for path in folder.iterdir()) == [".flac", ".part"], "the first span went"
    large = SoundCopies(tmp_path / "uploads", folder, 10_000, encoder)
    await large.load()
    assert names(folder) == [f"{ONE}.flac"], "spans do not outlast the process"
    for second in range(1, 20):
        await use(large, ONE, span=(0.0, second))
    assert len(names(folder)) == 17
    assert await use(large, ONE, span=(0.0, 19))
    assert len(encoder.started) == 22, "the last ones are still there"


async def test_a_span_ends_with_its_client(copies, encoder, folder):
    encoder.may_end.clear()

    async def span() -> None:
        async with copies.hold(ONE, "flac", span=(1.0, 2.0)):
            raise AssertionError

    request = asyncio.create_task(span())
    await until(lambda: encoder.started)
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    assert (encoder.cancelled, names(folder)) == ([ONE], [])


async def test_an_error_reaches_all_and_leaves_nothing(copies, encoder, folder):
    encoder.error = InvalidInput("Broken.")
    encoder.may_end.clear()
    requests = [asyncio.create_task(use(copies, ONE)) for _ in range(3)]
    await until(lambda: encoder.started)
    encoder.may_end.set()
    done = await asyncio.gather(*requests, return_exceptions=True)
    assert done == [encoder.error] * 3
    assert names(folder) == []
    encoder.error = None
    assert await use(copies, ONE), "the next request tries again"


async def test_copies_go_with_their_recording(copies, encoder, folder):
    for recording, form in ((ONE, "flac"), (TWO, "flac")):
        await use(copies, recording, form)
    encoder.may_end.clear()
    request = asyncio.create_task(use(copies, ONE, "ogg"))
    await until(lambda: len(encoder.started) == 3)
    await copies.remove(ONE)
    with pytest.raises(AudioNotKept):
        await request
    assert encoder.cancelled == [f"{ONE}.flac"]
    assert names(folder) == [f"{TWO}.flac"]


async def test_a_copy_that_is_sent_while_it_is_removed_stays_readable(copies, folder):
    async with copies.hold(ONE, "flac") as path:
        with path.open() as file:
            await copies.remove(ONE)
            assert file.read().startswith(ONE)
    assert names(folder) == []
    assert await use(copies, ONE), "the release has not disturbed the next copy"


async def test_a_copy_that_somebody_removed_is_made_again(copies, encoder, folder):
    await use(copies, ONE)
    (folder / f"{ONE}.flac").unlink()
    assert await use(copies, ONE)
    assert encoder.started == [ONE, ONE]


async def test_a_stop_ends_the_making(copies, encoder, folder):
    encoder.may_end.clear()
    request = asyncio.create_task(use(copies, ONE))
    await until(lambda: encoder.started)
    await copies.stop()
    with pytest.raises(NotReady):
        await request
    assert names(folder) == []


async def test_complete_copies_survive_a_restart_in_their_order(tmp_path, copies, encoder, folder):
    for recording in (ONE, TWO, ONE):
        await use(copies, recording)
    changed = (folder / f"{ONE}.flac").stat().st_mtime_ns
    (folder / f"{THREE}.part").write_bytes(b"half")
    restarted = SoundCopies(tmp_path / "uploads", folder, 250, encoder)
    await restarted.load()
    assert names(folder) == [f"{ONE}.flac", f"{TWO}.flac"]
    await use(restarted, THREE)
    assert names(folder) == [f"{ONE}.flac", f"{THREE}.flac"], "the least recently used one went"
    await use(restarted, ONE)
    assert encoder.started == [ONE, TWO, THREE]
    assert (folder / f"{ONE}.flac").stat().st_mtime_ns == changed, "the ETag stays"
    smaller = SoundCopies(tmp_path / "uploads", folder, 100, encoder)
    await smaller.load()
    assert names(folder) == [f"{ONE}.flac"]


def test_leftover_copies_are_those_without_a_recording(folder):
    for name in (f"{ONE}.flac", f"{TWO}.ogg", "notes.txt"):
        (folder / name).touch()
    remove_leftover_copies(folder, {ONE})
    assert names(folder) == [f"{ONE}.flac", "notes.txt"]
