"""Media workers that see no file of the front end: processes of this machine in another folder."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import pytest
import soundfile

from app.common.errors import InvalidInput, ProcessCrashed, RequeueBatch
from app.engines.speaker_model import find_speaker_model
from app.intake.disk import DiskSpace
from app.intake.uploads import Upload
from app.media import pool as media_pool
from app.media import remote_slot
from app.media.pcm_files import channel_path
from app.media.peaks import PeakCollector
from app.media.pool import MediaPool
from app.media.remote_slot import RemoteMediaSlot
from app.media.worker_slot import MediaCall
from app.pool.process import ChildProcess
from app.pool.tasks import RestartReason
from tests import media_files
from tests.event_loop import until
from tests.media_files import BROKEN, RATE, Pcm, encode, read_pcm, talk, wav_header
from tests.workers.media.decoding import request, steps_of
from workers import runtime
from workers.media import encode as encoding
from workers.media import remote, sessions, tasks
from workers.media.voices import embed
from workers.messages import EVERYTHING, Decoded, Selection, SpeakerModel

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]

R = TypeVar("R")

DATA = Path(__file__).parents[1] / "data"
SPEECH = talk(7.3, read_pcm(DATA / "talk.flac"))
UPLOAD = Path("upload")  # in the folder of the front end: a worker elsewhere does not find it
STEP_S = 2


def go_elsewhere(folder: str) -> None:
    """The initializer of a process whose folder is another one."""
    runtime.initialise("")
    os.chdir(folder)


def open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


class ProcessElsewhere(ChildProcess):
    """Stands for a process on another machine. `failing` have their calls answered here."""

    def __init__(self, folder: Path) -> None:
        super().__init__(go_elsewhere, str(folder))
        self.failing: dict[Callable[..., Any], Callable[[], Any]] = {}
        self.failing_calls: list[Callable[..., Any]] = []

    async def call(self, function: Callable[..., R], *args: object, deadline_s: float | None = None) -> R:
        if function in self.failing:
            self.failing_calls.append(function)
            return cast(R, self.failing[function]())
        return await super().call(function, *args, deadline_s=deadline_s)


@pytest.fixture(scope="module")
async def remote_pool(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MediaPool]:
    """A pool with one worker, which is elsewhere."""
    async with pool_of(0, ProcessElsewhere(tmp_path_factory.mktemp("elsewhere"))) as pool:
        yield pool


@asynccontextmanager
async def pool_of(local: int, *processes: ProcessElsewhere) -> AsyncIterator[MediaPool]:
    pool = MediaPool(local, DiskSpace(Path()), speaker_model)
    for process in processes:
        pool.add_remote(process)
    for slot in pool.dispatcher.slots:
        slot.status.state = "loading"  # else those elsewhere sleep until there is work
    pool.dispatcher.start()
    try:
        await until(lambda: not any(slot.status.state != "idle" for slot in pool.dispatcher.slots))
        yield pool
    finally:
        await pool.stop()


async def speaker_model() -> SpeakerModel:
    return find_speaker_model("")


@pytest.fixture(autouse=True)
def _front_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder; small steps and blocks, so that short recordings have several."""
    monkeypatch.chdir(tmp_path)
    for name in ("FIRST_STEP_SAMPLES", "STEP_SAMPLES"):
        monkeypatch.setattr(media_pool, name, STEP_S * RATE)
    monkeypatch.setattr(remote_slot, "_BLOCK_BYTES", 40_000)


def upload(content: bytes, *, raw_pcm: bool = False) -> Upload:
    UPLOAD.write_bytes(content)
    return Upload(UPLOAD, "talk", len(content), "", raw_pcm)


def content(path: str) -> bytes:
    return Path(path).read_bytes()


async def decode(
    pool: MediaPool,
    recording: Upload,
    pcm: str,
    selection: Selection = EVERYTHING,
    separate: bool = False,
    on_step: Callable[[Decoded], None] = lambda decoded: None,
) -> tuple[Decoded, bytes]:
    """The last step, and the peaks."""
    peaks = PeakCollector()
    steps = pool.decode(pcm, recording, Path(pcm), peaks=peaks, selection=selection, separate=separate)
    async with aclosing(steps):
        async for decoded in steps:
            on_step(decoded)
    return replace(decoded, peaks=b""), peaks.pack()


def decode_here(
    recording: Upload, pcm: str, selection: Selection = EVERYTHING, separate: bool = False
) -> tuple[Decoded, bytes]:
    """As `decode`, in this process, as a local worker does."""
    paths = [channel_path(Path(pcm), channel) for channel in range(8 if separate else 1)]
    peaks = PeakCollector()
    steps = steps_of(UPLOAD, paths, STEP_S * RATE, raw=recording.raw_pcm, selection=selection)
    for step in steps:
        peaks.add(step.samples, step.peaks, finished=step.finished)
    for channel, path in enumerate(paths):
        if channel not in step.channels:
            path.unlink()
    return replace(step, peaks=b""), peaks.pack()


def wav(*channels: Pcm, rate: int = RATE) -> bytes:
    file = BytesIO()
    soundfile.write(file, np.stack(channels, 1), rate, format="WAV")
    return file.getvalue()


def mp4_with_its_index_at_the_end() -> bytes:
    content = encode(SPEECH, "mp4", "aac", rate=44_100, layout="stereo")
    assert content.index(b"moov") > content.index(b"mdat")
    return content


PART = Selection(start=round(1.5 * RATE), end=round(5.25 * RATE))
RECORDINGS: dict[str, tuple[Callable[[], bytes], dict[str, Any]]] = {
    "wav": (lambda: wav(SPEECH, SPEECH[::-1], rate=24_000), {}),
    "mp3": (lambda: encode(SPEECH, "mp3", "mp3", rate=44_100), {}),
    "mp4": (mp4_with_its_index_at_the_end, {}),
    "film with gaps": (lambda: encode(SPEECH, "matroska", "flac", clock_jumps={3: 4.0}), {}),
    "second track": (
        lambda: media_files.film({"eng": SPEECH, "ger": SPEECH[::-1]}),
        {"selection": Selection(track=1)},
    ),
    "part": (lambda: encode(SPEECH, "flac", "flac"), {"selection": PART}),
    "part after the first steps": (
        lambda: encode(SPEECH, "mp3", "mp3"),
        {"selection": Selection(start=5 * RATE)},
    ),
    "two channels": (lambda: wav(SPEECH, SPEECH[::-1]), {"separate": True}),
    "part of three channels, two the same": (
        lambda: wav(SPEECH, SPEECH, SPEECH[::-1]),
        {"separate": True, "selection": PART},
    ),
    "one channel": (lambda: wav(SPEECH), {"separate": True}),
    "damaged": (lambda: encode(SPEECH, "flac", "flac")[:120_000] + bytes(20_000), {}),
}


@pytest.mark.parametrize("name", RECORDINGS)
async def test_files_are_those_of_a_local_worker(remote_pool: MediaPool, name: str) -> None:
    make, how = RECORDINGS[name]
    recording = upload(make())
    expected = decode_here(recording, "here", **how)
    assert await decode(remote_pool, recording, "there", **how) == expected
    assert expected[0].samples > 2 * STEP_S * RATE
    for channel in range(8):
        here, there = (channel_path(Path(name), channel) for name in ("here", "there"))
        assert here.exists() == there.exists()
        assert not here.exists() or there.read_bytes() == here.read_bytes()


async def test_raw_pcm(remote_pool: MediaPool) -> None:
    recording = upload(SPEECH.tobytes() + b"\0", raw_pcm=True)
    await decode(remote_pool, recording, "there")
    assert content("there") == SPEECH.tobytes()


@pytest.mark.parametrize("name", ["empty", "text", "a blink of sound", "mp4 without moov"])
async def test_refusals_are_those_of_a_local_worker(remote_pool: MediaPool, name: str) -> None:
    make, code = BROKEN[name]
    with pytest.raises(InvalidInput) as error:
        await decode(remote_pool, upload(make()), "there")
    assert error.value.code == code


async def test_speech_and_voices_are_those_of_a_local_worker(remote_pool: MediaPool) -> None:
    pcm = talk(25, read_pcm(DATA / "dialogue.flac"))
    upload(pcm.tobytes())
    for start, frames in ((0, 100), (400, 300), (700, 100)):  # the last has fewer; the second a long warm-up
        found = await remote_pool.speech_probabilities("job", UPLOAD, start, frames)
        assert found.tobytes() == tasks.speech_probabilities(str(UPLOAD), start, frames)
    beside = UPLOAD.with_suffix(".1")
    for channel, path in ((pcm // 500, UPLOAD), (pcm, beside)):  # quiet beside a loud one: not raised
        channel.tofile(path)
    found = await remote_pool.speech_probabilities("job", UPLOAD, 400, 300, beside)
    assert found.tobytes() == tasks.speech_probabilities(str(UPLOAD), 400, 300, str(beside))
    upload(pcm.tobytes())
    windows = [(3 * RATE, 4 * RATE), (RATE, 3 * RATE), (24 * RATE, 26 * RATE)]
    voices = await remote_pool.embed_voices("job", UPLOAD, windows)
    # In the same process, for time: torch takes some seconds to load.
    [slot] = remote_pool.dispatcher.slots
    assert isinstance(slot, RemoteMediaSlot)
    path = str(await asyncio.to_thread(UPLOAD.absolute))
    assert voices.tobytes() == await slot._process.call(embed.embed, path, windows, await speaker_model())


async def test_nothing_stays_of_a_recording(remote_pool: MediaPool) -> None:
    [slot] = remote_pool.dispatcher.slots
    assert isinstance(slot, RemoteMediaSlot)
    before = await slot._process.call(open_files)
    recording = upload(encode(SPEECH, "flac", "flac"))
    await decode(remote_pool, recording, "whole")
    async with aclosing(remote_pool.decode("job", recording, Path("cancelled"))) as steps:
        await anext(steps)
        assert await slot._process.call(open_files) > before
    with pytest.raises(InvalidInput):
        await decode(remote_pool, upload(b"no recording"), "refused")
    await asyncio.gather(*remote_pool._background)
    assert await slot._process.call(open_files) == before
    assert not slot._sent.keys() - {(await speaker_model()).identity}


async def test_the_recording_is_removed_while_it_is_sent(
    remote_pool: MediaPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    [slot] = remote_pool.dispatcher.slots
    assert isinstance(slot, RemoteMediaSlot)
    before = await slot._process.call(open_files)
    recording = upload(wav_header(SPEECH.nbytes) + SPEECH.tobytes())
    read = remote_slot._read

    def read_and_remove(path: str, offset: int, size: int) -> bytes:
        block = read(path, offset, size)
        UPLOAD.unlink()
        return block

    monkeypatch.setattr(remote_slot, "_read", read_and_remove)
    with pytest.raises(FileNotFoundError):
        await decode(remote_pool, recording, "there")
    assert await slot._process.call(open_files) == before


@pytest.mark.parametrize("local", [0, pytest.param(1, marks=pytest.mark.soak)])
async def test_another_worker_takes_over_in_mid_file(tmp_path: Path, local: int) -> None:
    recording = upload(encode(SPEECH, "mp3", "mp3"))
    expected = decode_here(recording, "here")
    processes = [ProcessElsewhere(tmp_path) for _ in range(2 - local)]
    async with pool_of(local, *processes) as pool:
        pids = {slot.index: slot._process.pid for slot in pool.dispatcher.slots}  # type: ignore[attr-defined]
        killed: list[int] = []

        def kill_the_decoder(decoded: Decoded) -> None:
            if not killed:
                [slot] = [slot.index for slot in pool.dispatcher.slots if slot.status.batches]
                killed.append(slot)
                os.kill(pids[slot], signal.SIGKILL)

        assert await decode(pool, recording, "there", on_step=kill_the_decoder) == expected
        [slot] = [slot for slot in pool.dispatcher.slots if slot.index in killed]
        assert slot.status.restarts_by[RestartReason.CRASH] == 1
    assert content("there") == content("here")


def refuse() -> bool:
    return False


def no_space() -> None:
    raise OSError(28, "No space left on device")


async def test_what_one_node_cannot_do_another_does(tmp_path: Path) -> None:
    lacking = ProcessElsewhere(tmp_path)
    async with pool_of(0, lacking, ProcessElsewhere(tmp_path)) as pool:
        for failing, failure in (
            (remote.begin_file, refuse),
            (remote.receive_block, no_space),
            (remote.decode, no_space),
        ):
            lacking.failing = {failing: failure}
            recording = upload(encode(SPEECH, "mp3", "mp3"))
            expected = decode_here(recording, "here")
            assert await decode(pool, recording, "there") == expected
            assert lacking.failing_calls.pop() == failing
        assert not any(slot.status.restarts for slot in pool.dispatcher.slots)


class FakeProcess:
    """A `WorkerProcess` that only notes what it is asked."""

    pid: int | None = None

    def __init__(self) -> None:
        self.on_exit: Callable[[ProcessCrashed], None] = lambda error: None
        self.called: list[Callable[..., Any]] = []

    async def start(self) -> None: ...

    async def call(self, function: Callable[..., R], *args: object, deadline_s: float | None = None) -> R:
        self.called.append(function)
        if function is remote.embed_voices:
            raise ModuleNotFoundError("No module named 'torch'")
        if function is remote.decode:
            return cast(R, remote.RemoteStep(Decoded(0, False), 0, ()))
        return cast(R, True)

    async def close(self) -> None: ...


def decoding_of(job: str) -> MediaCall:
    return MediaCall(tasks.decode, (job, request(UPLOAD, Path("pcm")), RATE))


async def test_a_film_and_a_copy_for_browsers_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    process = FakeProcess()
    slot = RemoteMediaSlot(1, process)
    upload(bytes(1001))
    monkeypatch.setattr(remote_slot, "_MAX_RECORDING_BYTES", 1000)
    film = decoding_of("job")
    assert slot.can_run(film)
    with pytest.raises(RequeueBatch):
        await slot.run([film], None)
    assert not slot.can_run(film)
    assert slot.can_run(decoding_of("another job"))
    assert not slot.can_run(MediaCall(encoding.encode, ("session",)))
    assert process.called == [remote.close], "nothing was sent"


async def test_a_worker_gets_as_many_recordings_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    slot = RemoteMediaSlot(1, FakeProcess())
    upload(bytes(1001))
    monkeypatch.setattr(remote_slot, "_MAX_SENT_BYTES", 2100)
    first, second, third = (decoding_of(job) for job in "123")
    await slot.run([first], None)
    await slot.run([second], None)
    with pytest.raises(RequeueBatch):
        await slot.run([third], None)
    assert not slot.can_run(third)
    await slot.run([second], None)
    await slot.run([MediaCall(sessions.close, ("1",))], None)
    await slot.run([decoding_of("4")], None)


class SlowProcess(FakeProcess):
    """On a node that takes nothing, and lives."""

    async def call(self, function: Callable[..., R], *args: object, deadline_s: float | None = None) -> R:
        if function is remote.receive_block:
            await asyncio.Event().wait()
        return await super().call(function, *args, deadline_s=deadline_s)


async def test_a_recording_that_a_node_does_not_take_goes_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    process = SlowProcess()
    slot = RemoteMediaSlot(1, process)
    upload(bytes(100))
    monkeypatch.setattr(remote_slot, "_SEND_S", 0.05)
    call = decoding_of("job")
    with pytest.raises(RequeueBatch, match="did not get 100 bytes"):
        await slot.run([call], None)
    assert not slot.can_run(call)
    assert process.called == [remote.begin_file, remote.close]


async def test_a_node_without_the_library_embeds_no_voices() -> None:
    slot = RemoteMediaSlot(1, FakeProcess())
    upload(bytes(100))
    call = MediaCall(embed.embed, (str(UPLOAD), [(0, 10)], SpeakerModel("model", str(UPLOAD), "identity")))
    with pytest.raises(RequeueBatch):
        await slot.run([call], None)
    assert not slot.can_run(call)
    await slot.start()  # another node, perhaps
    assert slot.can_run(call)


async def test_closing_what_was_not_sent_asks_nobody() -> None:
    process = FakeProcess()
    await RemoteMediaSlot(1, process).run([MediaCall(sessions.close, ("job",))], None)
    assert not process.called
