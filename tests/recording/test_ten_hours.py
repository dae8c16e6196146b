"""Ten hours in several languages, by simulated workers on a virtual clock."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

import pytest

from app.engines.simulated import SIMULATED, SimulatedWorker, Simulation
from app.recording.clip_planner import MAX_SILENCE_SAMPLES
from app.transcript.timeline import Transcript
from bench import virtual_clock
from bench.simulated_fleet import make_fleet
from tests.recording.test_pipeline import PERIOD_S, FakeMedia, new_pipeline
from workers.messages import SAMPLE_RATE, Window
from workers.whisper import worker as whisper

pytestmark = pytest.mark.timeout(120)

LENGTH_S = 36_000
TURN_S = 610  # of a language: so it changes at the edges of clips and inside of them
MIDDLE_S = LENGTH_S // 2
TURNS = list(zip(range(0, LENGTH_S, TURN_S), cycle(("en", "fr", "de")), strict=False))
FOREIGN = [(MIDDLE_S, "ru"), (MIDDLE_S + PERIOD_S, TURNS[MIDDLE_S // TURN_S][1])]  # one sentence
SPOKEN = tuple(sorted([*TURNS, *FOREIGN]))


class WithoutAudio(SimulatedWorker):
    """Gets no audio."""

    async def decode(self, windows: Sequence[Window]) -> list[whisper.Answer]:
        return await super().decode([replace(window, pcm_path=None) for window in windows])


@dataclass(frozen=True)
class Run:
    transcript: Transcript
    device_s: float  # in which devices decoded


def transcribe(
    folder: Path, workers: int, languages: tuple[tuple[float, str], ...], **options: object
) -> Run:
    async def work() -> Run:
        fleet = make_fleet(workers, Simulation(languages=languages), WithoutAudio)
        fleet.start()
        media = FakeMedia(LENGTH_S // PERIOD_S)
        pipeline = new_pipeline(
            folder, fleet, media, max_silence=MAX_SILENCE_SAMPLES, model=SIMULATED, **options
        )
        transcript = await pipeline.run()
        await fleet.stop()
        return Run(transcript, sum(slot.worker.device_s for slot in fleet.slots))

    return virtual_clock.run(work())


def spoken_at(sample: int) -> str:
    return [language for since, language in SPOKEN if since <= sample / SAMPLE_RATE][-1]


def test_each_sentence_is_in_its_language_on_any_number_of_workers(tmp_path: Path) -> None:
    one, two, three = (transcribe(tmp_path, workers, SPOKEN).transcript for workers in (1, 2, 3))
    segments = list(one.segments)
    assert len(segments) == LENGTH_S // PERIOD_S
    assert [segment.language for segment in segments] == [spoken_at(segment.start) for segment in segments]
    assert list(one.languages or ()) == ["en", "fr", "de", "ru"]
    for other in (two, three):
        assert replace(other, segments=list(other.segments)) == replace(one, segments=segments)


def test_one_language_costs_a_device_no_more_than_three_percent(tmp_path: Path) -> None:
    given = transcribe(tmp_path, 2, (), language="en")
    detected = transcribe(tmp_path, 2, ())
    several = transcribe(tmp_path, 2, SPOKEN)
    assert detected.transcript.clips == given.transcript.clips == several.transcript.clips
    assert detected.transcript.text == given.transcript.text
    assert detected.transcript.languages is None
    assert given.device_s < detected.device_s <= 1.03 * given.device_s
