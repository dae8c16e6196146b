"""The audio of a live stream: from its client to the detection of speech, and into files for the workers."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import structlog

from app.common.concurrency import BackgroundTasks
from app.common.errors import StreamRefused, WhisperfleetError
from app.intake.disk import disk_full
from app.live.detection import SpeechDetection
from workers.messages import NO_SPACE_ERRNOS, SAMPLE_RATE, CarriedAudio, DetectedSpeech, Encoding, NewAudio

MAX_AHEAD_S = 4.0  # of audio that nobody has examined: further audio waits with its client
_MAX_ENTRIES = 100  # that wait: one after the other is examined, however short
_EXAMINED_AT_ONCE_S = 2.0  # of one stream, so that the others do not wait
# Once a file has so much audio, a new one begins. The old one goes when its clips are transcribed.
FILE_SAMPLES = 120 * SAMPLE_RATE

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Arrived:
    """Audio in one encoding, or an action that follows when the audio before it is examined."""

    encoding: Encoding = field(default_factory=Encoding)
    audio: bytearray = field(default_factory=bytearray)
    action: Callable[[], None] | None = None


@dataclass(slots=True, eq=False)
class AudioFile:
    """A part of the stream, each sample at its place in the stream: s16le, mono, 16 kHz."""

    path: Path
    start: int  # the first sample that is there
    users: int = 0  # clips that workers read


class StreamAudio:
    """Takes the audio of a client, and has it examined in order. Positions are samples at 16 kHz."""

    def __init__(
        self,
        folder: Path,
        name: str,
        detection: SpeechDetection,
        on_detected: Callable[[npt.NDArray[np.float32]], None],
        kept_from: Callable[[], int],
    ) -> None:
        """`on_detected` gets the probability of speech in each frame, in order. `kept_from` says which sample
        is the first that is needed of a file that the clips before no longer need.
        """
        self.fault: WhisperfleetError | None = None  # why no more audio is taken
        self._stem = folder / name
        self._detection = detection
        self._on_detected = on_detected
        self._kept_from = kept_from
        self._arrived: deque[_Arrived] = deque()
        self._part = b""  # of a sample, whose rest is still to come
        self._encoding = Encoding()  # of that part
        self._ahead_s = 0.0
        self._space = asyncio.Event()
        self._idle = asyncio.Event()  # all is examined and done
        self._idle.set()
        self._is_under_way = False
        self._carried = CarriedAudio()
        self.file = AudioFile(self._stem.with_suffix(".0"), 0)  # has all audio of the speech that is open
        self._next_file: AudioFile | None = None
        self._stored = {self.file}
        self._files = 1
        self._removing = BackgroundTasks()
        self._is_closed = False

    async def append(self, audio: bytes, encoding: Encoding) -> None:
        """Add audio. Waits while too much is ahead. Raises `fault`, which is DiskFull or StreamRefused."""
        last = self._arrived[-1] if self._arrived else None
        if last is None or last.action is not None or last.encoding != encoding:
            last = _Arrived(encoding)
            self._arrived.append(last)
        if encoding != self._encoding:
            self._part, self._encoding = b"", encoding
        audio = self._part + audio
        whole = len(audio) // encoding.bytes_per_sample * encoding.bytes_per_sample
        last.audio += audio[:whole]
        self._part = audio[whole:]
        self._ahead_s += whole / encoding.bytes_per_second
        self._wake()
        await self._wait_while(lambda: self._ahead_s > MAX_AHEAD_S)
        if self.fault is not None:
            raise self.fault

    def then(self, action: Callable[[], None], *, ends_sample: bool = True) -> None:
        """Do something once all audio that came before it is examined; at once if no more is taken.

        `ends_sample`: what follows begins with a whole sample.
        """
        if self.fault is not None:
            action()
            return
        self._arrived.append(_Arrived(action=action))
        if ends_sample:
            self._part = b""
        self._wake()

    async def until_ready(self) -> None:
        """Wait until the queue has fewer entries than its limit, or takes no more."""
        await self._wait_while(lambda: len(self._arrived) > _MAX_ENTRIES)

    async def _wait_while(self, is_full: Callable[[], bool]) -> None:
        while is_full() and self.fault is None and not self._is_closed:
            self._space.clear()
            await self._space.wait()

    async def until_examined(self) -> None:
        """Wait until all audio is examined, and what was to follow is done; or until the stream ends."""
        await self._idle.wait()

    def hold(self) -> AudioFile:
        """The file that has the audio up to now. It stays until `release`."""
        self.file.users += 1
        return self.file

    def release(self, file: AudioFile) -> None:
        """A clip no longer needs its file."""
        file.users -= 1
        self._remove_if_unused(file)

    def stop(self) -> None:
        """Take no more audio, and pass on nothing of what came."""
        self._is_closed = True
        self._arrived.clear()
        self._detection.forget(self)
        self._space.set()
        self._idle.set()

    async def remove(self) -> None:
        """Remove what is stored, after `stop`."""
        for file in [*self._stored]:
            self._remove(file)
        if self._removing:
            await asyncio.wait(set(self._removing))

    @property
    def position(self) -> int:
        """The sample up to which the files have the stream."""
        return self._carried.position

    def next_audio(self) -> NewAudio | None:
        """The audio that has come since the last call, in one encoding; None if there is none."""
        if self._is_under_way or self._is_closed or self.fault is not None:
            return None
        while self._arrived and not self._arrived[0].audio:
            done = self._arrived.popleft()
            if done.action is not None:
                done.action()
        if not self._arrived:
            self._space.set()
            self._idle.set()
            return None
        first = self._arrived[0]
        most = int(_EXAMINED_AT_ONCE_S * first.encoding.bytes_per_second)
        audio = bytes(first.audio[:most])
        del first.audio[:most]
        self._ahead_s -= len(audio) / first.encoding.bytes_per_second
        self._space.set()
        self._is_under_way = True
        carried = self._carried.for_encoding(first.encoding)
        if self._next_file is None:
            return NewAudio(str(self.file.path), audio, carried)
        copied = (str(self.file.path), self._next_file.start)
        return NewAudio(str(self._next_file.path), audio, carried, copied)

    def detected(self, examined: DetectedSpeech | OSError) -> None:
        """What was found in the last audio, or why it could not be stored."""
        self._is_under_way = False
        self._remove_late()
        if self._is_closed or self.fault is not None:  # the queued actions ran without this audio
            return
        if isinstance(examined, OSError):
            log.error("the audio of a stream cannot be stored", stream=self._stem.name, error=str(examined))
            full = examined.errno in NO_SPACE_ERRNOS
            self.fail(disk_full() if full else StreamRefused("The service cannot store the audio."))
        else:
            self._carried = examined.carried
            self._change_file()
            self._on_detected(np.frombuffer(examined.probabilities, np.float32))

    def failed(self) -> None:
        """A fault of this service keeps the audio from being examined."""
        self._is_under_way = False
        self._remove_late()
        self.fail(StreamRefused("The service has a fault, and has ended the stream. Open another one."))

    def fail(self, fault: WhisperfleetError) -> None:
        """Take no more audio, for this reason. Does nothing if the stream has ended."""
        if self._is_closed:
            return
        self.fault = fault
        while self._arrived:
            if (action := self._arrived.popleft().action) is not None:
                action()
        self._space.set()
        self._idle.set()

    def _wake(self) -> None:
        self._idle.clear()
        self._detection.wake(self)

    def _change_file(self) -> None:
        """Go over to the next file, which has what the current speech needs; or plan one."""
        if self._next_file is not None:
            before, self.file, self._next_file = self.file, self._next_file, None
            self._remove_if_unused(before)
        elif self._carried.position - self.file.start >= FILE_SAMPLES:
            start = self._kept_from()
            if start - self.file.start >= FILE_SAMPLES // 2:
                self._next_file = AudioFile(self._stem.with_suffix(f".{self._files}"), start)
                self._stored.add(self._next_file)
                self._files += 1

    def _remove_if_unused(self, file: AudioFile) -> None:
        if not file.users and file not in (self.file, self._next_file):
            self._remove(file)

    def _remove_late(self) -> None:
        """Remove the file that the process may have written after `remove`."""
        written = self._next_file or self.file
        if self._is_closed and written not in self._stored:
            self._removing.spawn(asyncio.to_thread(written.path.unlink, missing_ok=True))

    def _remove(self, file: AudioFile) -> None:
        if file in self._stored:
            self._stored.remove(file)
            self._removing.spawn(asyncio.to_thread(file.path.unlink, missing_ok=True))
