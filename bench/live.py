"""How many live streams a fleet serves, and what they cost the files beside them, simulated.

    .venv/bin/python -m bench.live [streams|files ...] [--quick] [--json FILE]

Streams, their turns and drafts, the dispatcher and the slots are real. Clients, the detection of speech, the
workers and the clock are simulated. The constants are those of large-v3-turbo's size in torch on one H100, as
it was measured: a batch of up to 16 takes 12 ms + 8.2 ms x windows, in proportion to their audio context, +
0.68 ms x tokens of the longest window; and 1 ms for each window on its way, while the device decodes. CPU is
a slow worker, which has one batch at a time: a full one of files takes 0.7 s. The figures are the same on any
machine.
"""

import asyncio
import random
import statistics
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from app.engines.simulated import SIMULATED, Simulation
from app.engines.window_request import WindowRequest, expected_tokens
from app.live.decoder import StreamModel
from app.live.detection import Speaker, SpeechDetection
from app.live.events import Agreed, LiveEvent, StreamOptions
from app.live.metrics import LiveMetrics
from app.live.stream import LiveStream
from app.pool.batching import BatchCost
from app.pool.tasks import Batch, Outcome, Slot, TaskResult
from app.recording.clip_decoding import ClipRequest, decode_clip
from app.recording.clip_planner import MAX_SILENCE_SAMPLES
from app.recording.recording_work import WindowDispatcher
from app.telemetry.work import Work, working_for
from bench import virtual_clock
from bench.command import chosen, parser_of, silence_logs
from bench.measuring import Figures, Table, write_json
from bench.simulated_fleet import DECODING, make_fleet
from bench.speech_samples import drawn_clips
from workers.messages import (
    BYTES_PER_SAMPLE,
    FRAME_SAMPLES,
    FULL_CONTEXT_S,
    SAMPLE_RATE,
    CarriedAudio,
    DecodingOptions,
    DetectedSpeech,
    Segment,
    Span,
    Window,
    WindowResult,
    Word,
)

TURBO = Simulation(cost=BatchCost(fixed_ms=12, task_ms=8.2, size_ms=0.68), batch=16, host_ms=1)
CPU = Simulation(cost=BatchCost(fixed_ms=4, task_ms=140, size_ms=0.8), batch=4)
SLOTS = (1, 4, 8)
GOAL_S = 1.0  # the median delay of first words
FILES = 10
STREAMS_BESIDE, STREAMS_ON_CPU = 20, 2
CROWDS = 5  # one after the other: the median delay of one crowd is 0.66 to 0.78 s
KINDS = ("draft", "closed", "file")  # of windows
CONTEXTS_S = (10, FULL_CONTEXT_S)  # of drafts: less than the full one where the model stands it

_WORD_S = 0.4  # 150 words a minute
_CHUNK_S = 0.1  # of audio, as a client sends it
_DETECTION_S = 0.06  # between two calls of the process that finds speech
_WARM_UP_S = 8.0
_CHUNK = bytes(round(_CHUNK_S * SAMPLE_RATE) * BYTES_PER_SAMPLE)
# How people speak: the lengths of speech and of silence (s), for uniform distributions. One stream of two is
# a talk; the others are one side of a dialogue.
SPEAKING = {"talk": ((2.0, 8.0), (0.2, 1.5)), "dialogue": ((0.8, 6.0), (1.0, 7.0))}


@dataclass
class _Payload:
    """A window whose audio nobody has to read: it is silent, and as long as it should be."""

    source: WindowRequest
    kind: str  # of `KINDS`
    sent: Window | None = None

    @property
    def continues(self) -> bool:
        return self.source.continues

    @property
    def samples(self) -> int:
        return self.source.samples

    @property
    def decoding(self) -> DecodingOptions:
        return self.source.decoding

    @property
    def context(self) -> float:
        """The audio context, as a part of the full one."""
        assert self.sent is not None
        return self.sent.decoding.context_s / FULL_CONTEXT_S

    @property
    def tokens(self) -> float:
        assert self.sent is not None
        return expected_tokens(self.sent.speech)

    def for_worker(self) -> Window:
        self.sent = self.source.for_worker()
        return Window(bytes(self.sent.samples * BYTES_PER_SAMPLE), self.sent.speech, self.sent.decoding)


@dataclass
class _Dispatching:
    """The dispatcher, as streams see it: its windows have the words that were spoken."""

    fleet: WindowDispatcher

    async def submit(self, job: str, source: WindowRequest, **options: Any) -> TaskResult[WindowResult]:
        payload = _Payload(source, "closed" if options.get("deadline") is None else "draft")
        answer = await self.fleet.submit(job, cast(WindowRequest, payload), **options)
        assert payload.sent is not None
        segments = tuple(_segment(span, source.start) for span in payload.sent.speech)
        return answer._replace(result=replace(answer.result, segments=segments))

    def cancel(self, job: str) -> None:
        self.fleet.cancel(job)

    def expecting_urgent(self) -> AbstractContextManager[None]:
        return self.fleet.expecting_urgent()


def _segment(span: Span, start: int) -> Segment:
    """Speech in a window that begins at `start` of the stream: a word for each time in it."""
    size = round(_WORD_S * SAMPLE_RATE)
    first, end = (start + span[0]) // size, (start + span[1]) // size
    words = tuple(
        Word(f" {number}", max(span[0], number * size - start), (number + 1) * size - start, 1.0)
        for number in range(first, end)
    )
    text = "".join(word.text for word in words)
    return Segment(*span, text, (), 0.0, 0.0, 1.0, 0.0, words)


class _KnownSpeech(SpeechDetection):
    """Finds the speech of one stream, whose times are known."""

    def __init__(self, probabilities: npt.NDArray[np.float32]) -> None:
        super().__init__()
        self._probabilities = probabilities  # of each frame
        self._is_waiting = False

    def wake(self, stream: Speaker) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            asyncio.get_running_loop().call_later(_DETECTION_S, self._examine, stream)

    def _examine(self, stream: Speaker) -> None:
        self._is_waiting = False
        if (new := stream.next_audio()) is not None:
            position = new.carried.position + len(new.audio) // BYTES_PER_SAMPLE
            frames = self._probabilities[new.carried.position // FRAME_SAMPLES : position // FRAME_SAMPLES]
            stream.detected(DetectedSpeech(CarriedAudio(position=position), frames.tobytes()))
            self.wake(stream)


def spoken(kind: str, seconds: float, source: random.Random) -> npt.NDArray[np.float32]:
    """The speech probabilities of a stream's frames, shape (n,): 1 where somebody speaks."""
    frames = np.zeros(round((seconds + 1) * SAMPLE_RATE) // FRAME_SAMPLES, np.float32)
    speech, silence = SPEAKING[kind]
    at = source.uniform(0, silence[1])
    while at < seconds:
        end = at + source.uniform(*speech)
        frames[round(at * SAMPLE_RATE / FRAME_SAMPLES) : round(end * SAMPLE_RATE / FRAME_SAMPLES)] = 1
        at = end + source.uniform(*silence)
    return frames


@dataclass
class Load:
    """What happened in the measured time."""

    measured_s: float
    first_s: list[float] = field(default_factory=list)  # after the last of a turn's first words was spoken
    words_s: list[float] = field(default_factory=list)  # the same of each word
    expired: int = 0  # drafts
    # By the kind of windows: how many, and for how long devices were busy with them (s).
    windows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    device_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 0.0))

    @property
    def median_s(self) -> float:
        """The median delay of first words."""
        return statistics.median(self.first_s)


class _Client:
    """Sends the audio of one stream in real time, and measures its text."""

    def __init__(
        self, number: int, context_s: float, fleet: WindowDispatcher, seconds: float, load: Load
    ) -> None:
        source = random.Random(number)
        self._offset_s = source.uniform(0, 1)
        self._seconds = seconds
        self._load = load
        kind = "talk" if number % 2 else "dialogue"
        probabilities = spoken(kind, seconds, source)
        model = StreamModel(
            SIMULATED,
            cast(WindowDispatcher, _Dispatching(fleet)),
            MAX_SILENCE_SAMPLES,
            FULL_CONTEXT_S,
            context_s,
        )
        with working_for(Work(owner=f"owner {number % 7}")):
            self._stream = LiveStream(
                model, StreamOptions(language="en"), Path(), _KnownSpeech(probabilities), LiveMetrics()
            )
        self._stream.on_event = self._on_event
        self._begun: set[int] = set()  # items that have text

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        self._start = loop.time() + self._offset_s
        for number in range(1, round(self._seconds / _CHUNK_S)):
            await asyncio.sleep(self._start + number * _CHUNK_S - loop.time())
            await self._stream.append(_CHUNK)

    def _on_event(self, event: LiveEvent) -> None:
        now = asyncio.get_running_loop().time()
        if now < _WARM_UP_S:
            return
        if isinstance(event, Agreed):
            delays = [now - self._start - (int(word) + 1) * _WORD_S for word in event.text.split()]
            self._load.words_s += delays
            if event.item not in self._begun:
                self._begun.add(event.item)
                self._load.first_s.append(delays[-1])


def simulate(
    slots: int,
    streams: int,
    context_s: float,
    *,
    files: int = 0,
    seconds: float = 40.0,
    simulation: Simulation = TURBO,
    crowds: int = 1,
) -> Load:
    """Streams, and files that never end, on so many slots for so many seconds.

    `context_s`: of drafts. `crowds`: of speakers, each of which streams for that time.
    """
    load = Load(crowds * (seconds - _WARM_UP_S))

    def on_batch(
        slot: Slot[WindowRequest, WindowResult], batch: Batch[WindowRequest, WindowResult], outcome: Outcome
    ) -> None:
        if asyncio.get_running_loop().time() < _WARM_UP_S:
            return
        payloads = [cast(_Payload, task.payload) for task in batch.tasks]
        context = payloads[0].context
        cost = replace(simulation.cost, task_ms=simulation.cost.task_ms * context)
        device_s = cost.seconds([payload.tokens for payload in payloads])
        for payload in payloads:
            load.windows[payload.kind] += 1
            load.device_s[payload.kind] += device_s / len(payloads)

    async def work(crowd: int) -> None:
        fleet = make_fleet(slots, simulation, on_batch=on_batch)
        fleet.start()
        numbers = range(1000 * crowd, 1000 * crowd + streams)
        clients = [_Client(number, context_s, fleet, seconds, load) for number in numbers]
        tasks = [asyncio.create_task(client.run()) for client in clients]
        tasks += [asyncio.create_task(_transcribe_for_ever(fleet, number)) for number in range(files)]
        await asyncio.sleep(seconds)
        load.expired += fleet.expired
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    for crowd in range(crowds):
        virtual_clock.run(work(crowd))
    return load


async def _transcribe_for_ever(fleet: WindowDispatcher, number: int) -> None:
    """Transcribe recordings of an hour, one after the other, as the pipeline does."""
    job = f"file {number}"
    ahead = asyncio.Semaphore(fleet.prefetch_limit)

    async def transcribe(request: ClipRequest) -> None:
        windows = decode_clip(request)
        window = next(windows)
        try:
            while True:
                done = await fleet.submit(
                    job,
                    cast(WindowRequest, _Payload(window, "file")),
                    key=window.batch_key,
                    size=expected_tokens(window.speech),
                    weight=window.decoding.beams,
                    continues=window.continues,
                )
                window = windows.send(done.result)
        except StopIteration:
            return
        finally:
            ahead.release()

    with working_for(Work(owner=f"owner {number % 7}")):
        async with asyncio.TaskGroup() as clips:
            for again in count():
                for clip in drawn_clips("lecture", 60, seed=100 * again + number):
                    await ahead.acquire()
                    request = ClipRequest(Path(), clip.start, clip.end, clip.speech, DECODING)
                    clips.create_task(transcribe(request))


def most_streams(slots: int, context_s: float, step: int, seconds: float) -> tuple[int, float]:
    """The most streams, in steps for each slot, with a median delay within the goal; and that median (s)."""
    good, bad, median_s = 0, 24, 0.0
    while bad - good > 1:
        middle = (good + bad) // 2
        found_s = simulate(slots, middle * step * slots, context_s, seconds=seconds).median_s
        if found_s <= GOAL_S:
            good, median_s = middle, found_s
        else:
            bad = middle
    return good * step * slots, median_s


def measure_streams(quick: bool) -> tuple[Figures, Table]:
    """How many streams each number of slots serves."""
    rows = []
    for context_s in CONTEXTS_S:
        found = [
            most_streams(slots, context_s, step=10, seconds=16.0 if quick else 24.0)
            for slots in (SLOTS[:1] if quick else SLOTS)
        ]
        rows.append([f"{context_s} s", *(f"{streams} ({median_s:.2f} s)" for streams, median_s in found)])
    table = Table(
        f"Streams until the median delay of first words passes {GOAL_S:.0f} s (and the median)",
        ["context of drafts", *(f"{slots} slots" for slots in SLOTS)],
        rows,
    )
    return {"streams": rows}, table


def measure_files(quick: bool) -> tuple[Figures, Table]:
    """What streams and files cost each other."""
    rows, figures = [], []
    seconds = 16.0 if quick else 40.0
    cases = [(TURBO, slots, context_s) for context_s in CONTEXTS_S for slots in SLOTS]
    for simulation, slots, context_s in [*(cases[:1] if quick else cases), (CPU, 1, CONTEXTS_S[0])]:
        crowds = 1 if quick else CROWDS
        streams = STREAMS_BESIDE if simulation is TURBO else STREAMS_ON_CPU
        beside = partial(simulate, slots, context_s=context_s, seconds=seconds, simulation=simulation)
        alone = beside(streams, crowds=crowds)
        files = beside(0, files=FILES)
        both = beside(streams, files=FILES, crowds=crowds)
        lost = 1 - both.windows["file"] / crowds / files.windows["file"]
        used = (both.device_s["draft"] + both.device_s["closed"]) / (slots * both.measured_s)
        rows.append(
            [
                "turbo" if simulation is TURBO else "CPU",
                f"{context_s} s",
                slots,
                streams,
                *(f"{_delays(load.first_s)}" for load in (alone, both)),
                f"{files.windows['file'] / files.measured_s:.1f}",
                f"{both.windows['file'] / both.measured_s:.1f} (-{lost:.0%})",
                f"{used:.0%}",
            ]
        )
        figures.append([asdict(load) for load in (alone, files, both)])
    table = Table(
        f"Streams and {FILES} files of an hour",
        [
            "worker",
            "context of drafts",
            "slots",
            "streams",
            "delay of first words, streams alone (s: median, 95 %)",
            "beside the files",
            "windows of files per second, alone",
            "beside the streams",
            "streams use of the devices",
        ],
        rows,
    )
    return {"files": figures}, table


def _delays(delays_s: Sequence[float]) -> str:
    ordered = sorted(delays_s)
    return f"{statistics.median(ordered):.2f}, {ordered[len(ordered) * 95 // 100]:.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the given parts and print their tables. Returns the exit code."""
    parts = {"streams": measure_streams, "files": measure_files}
    parser = parser_of(__doc__, parts, prog="python -m bench.live")
    parsed = parser.parse_args(arguments)
    silence_logs()
    figures: Figures = {}
    for measure in chosen(parser, parsed.parts, parts).values():
        found, table = measure(parsed.quick)
        figures |= found
        print("", table, sep="\n", flush=True)
    if parsed.json is not None:
        write_json(parsed.json, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
