"""The peaks that a media worker finds while it decodes."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.media_files import GOOD, RATE, Pcm, read_pcm, wav_header
from tests.sample_peaks import pairs
from tests.workers.media.decoding import request
from workers.media import peaks as module
from workers.media import sessions
from workers.media import tasks as media
from workers.media.peaks import PeakFinder
from workers.messages import PEAK_SAMPLES

TALK = Path(__file__).parents[2] / "data" / "talk.flac"


def read(found: bytes) -> list[tuple[int, int]]:
    return [tuple(pair) for pair in np.frombuffer(found, "<i2").reshape(-1, 2).tolist()]


def noise(samples: int) -> Pcm:
    return np.random.default_rng(samples).integers(-32768, 32767, samples, np.int16, endpoint=True)


@given(
    samples=st.integers(1, 4000),
    sizes=st.lists(st.integers(0, 900), max_size=20),
    takes=st.sets(st.integers(0, 20)),
    block=st.integers(2, 3000),
)
def test_any_chunks_and_steps_give_the_same(
    samples: int, sizes: list[int], takes: set[int], block: int
) -> None:
    pcm = noise(samples)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK_BYTES", block)
        finder, found, at = PeakFinder(), b"", 0
        for number, size in enumerate([*sizes, samples]):
            finder.feed(pcm[at : at + size].tobytes())
            at = min(at + size, samples)
            if number in takes:
                found += finder.take(finished=False)
                assert len(read(found)) == at // PEAK_SAMPLES, "each bin comes as soon as it is complete"
        assert read(found + finder.take(finished=True)) == pairs(pcm)


@pytest.fixture(scope="module")
def speech() -> Pcm:
    return read_pcm(TALK)[: 7 * RATE]


def decoded(source: Path, pcm_path: Path, job: str, max_samples: int, stop_after: int | None = None) -> bytes:
    """The peaks of a recording, or of its first steps."""
    found = b""
    steps = 0
    while steps != stop_after:
        step = media.decode(job, request(source, pcm_path), max_samples)
        found += step.peaks
        steps += 1
        bins = -(-step.samples // PEAK_SAMPLES) if step.finished else step.samples // PEAK_SAMPLES
        assert len(read(found)) == bins
        if step.finished:
            break
    return found


@pytest.mark.parametrize("name", ["wav 16 bit", "mp3 44.1 kHz stereo", "ogg opus"])
@pytest.mark.parametrize("max_samples", [1, 1234, RATE, 60 * RATE])
def test_peaks_are_those_of_the_decoded_audio(
    speech: Pcm, tmp_path: Path, name: str, max_samples: int
) -> None:
    source, pcm_path = tmp_path / "upload", tmp_path / "pcm"
    source.write_bytes(GOOD[name].encode(speech))
    pcm_path.touch()
    found = decoded(source, pcm_path, "peaks", max_samples)
    assert read(found) == pairs(np.fromfile(pcm_path, "<i2"))


def test_a_worker_that_takes_over_finds_all_peaks(speech: Pcm, tmp_path: Path) -> None:
    source, pcm_path = tmp_path / "upload", tmp_path / "pcm"
    source.write_bytes(GOOD["ogg opus"].encode(speech))
    pcm_path.touch()
    before = decoded(source, pcm_path, "first", 12_345, stop_after=3)
    sessions.close("first")
    found = decoded(source, pcm_path, "second", RATE)
    assert read(found) == pairs(np.fromfile(pcm_path, "<i2"))
    assert found.startswith(before)


def test_bare_pcm_has_peaks(speech: Pcm, tmp_path: Path) -> None:
    source, pcm_path = tmp_path / "upload", tmp_path / "pcm"
    source.write_bytes(speech.astype("<i2").tobytes())
    pcm_path.touch()
    step = media.decode("bare", request(source, pcm_path, raw=True), 60 * RATE)
    assert read(step.peaks) == pairs(speech)


def test_a_recording_that_declares_too_much_has_none(tmp_path: Path) -> None:
    source, pcm_path = tmp_path / "upload", tmp_path / "pcm"
    source.write_bytes(wav_header(2 * RATE) + bytes(2 * RATE))
    pcm_path.touch()
    step = media.decode("long", request(source, pcm_path), RATE, max_declared=100)
    assert (step.samples, step.peaks) == (0, b"")
    sessions.close("long")


def test_peaks_that_nobody_wants_are_not_looked_for(speech: Pcm, tmp_path: Path) -> None:
    (tmp_path / "upload").write_bytes(GOOD["wav 16 bit"].encode(speech))
    (tmp_path / "pcm").touch()
    step = media.decode("job", request(tmp_path / "upload", tmp_path / "pcm", find_peaks=False), 60 * RATE)
    assert (step.samples, step.finished, step.peaks) == (len(speech), True, b"")
