"""Quiet voices are found as loud ones are, and nothing else is found because of it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.media_files import RATE, Pcm, read_pcm, talk
from workers.media import quiet_sound, tasks
from workers.media.silero import Floats, SileroModel, framed
from workers.messages import CHUNK_FRAMES, FRAME_SAMPLES

MODEL = SileroModel()
SPEECH = read_pcm(Path(__file__).parents[2] / "data/talk.flac")
OTHER = read_pcm(Path(__file__).parents[2] / "data/librivox.flac")
SECONDS = 30
AROUND = RATE // FRAME_SAMPLES  # frames: a second

levels = st.lists(st.integers(-100, 0), min_size=1, max_size=300).map(
    lambda decibels: np.float32(10) ** (np.array(decibels, np.float32) / 20)
)


def at(decibels: float, sound: npt.NDArray[np.generic] = SPEECH[: SECONDS * RATE], offset: float = 0) -> Pcm:
    """A sound with its peak at this level (dBFS)."""
    wanted = sound.astype(float) / np.abs(sound.astype(float)).max() * 10 ** (decibels / 20) + offset
    return np.clip(np.rint(wanted * 32768), -32768, 32767).astype(np.int16)


def found_in(path: Path, pcm: Pcm, *beside: Pcm) -> Floats:
    """The speech probabilities of a recording, beside other channels."""
    paths = [path.with_suffix(f".{number}") for number in range(1 + len(beside))]
    for each, samples in zip(paths, (pcm, *beside), strict=True):
        samples.tofile(each)
    first, *others = map(str, paths)
    return np.frombuffer(tasks.speech_probabilities(first, 0, len(framed(pcm)), *others), "<f4")


def unraised(pcm: Pcm) -> Floats:
    """What the model alone says."""
    return MODEL.probabilities(framed(pcm))[0]


@pytest.mark.parametrize("decibels", [0, -10, -20, -30, -35])
def test_of_sound_that_is_not_quiet_the_values_are_those_of_the_model(
    tmp_path: Path, decibels: float
) -> None:
    np.testing.assert_array_equal(found_in(tmp_path / "pcm", at(decibels)), unraised(at(decibels)))


@pytest.mark.parametrize("offset", [0, 0.01])
@pytest.mark.parametrize("decibels", [-50, -60])
def test_a_quiet_voice_is_found_as_a_loud_one(tmp_path: Path, decibels: float, offset: float) -> None:
    spoken = unraised(at(-3)) > 0.5
    found = found_in(tmp_path / "pcm", at(decibels, offset=offset)) > 0.5
    assert np.mean(found[spoken]) > 0.9
    assert np.mean(found[~spoken]) < 0.05
    assert np.mean(unraised(at(decibels, offset=offset))[spoken] > 0.5) < 0.75


def test_clicks_and_a_bang_hide_no_quiet_voice(tmp_path: Path) -> None:
    pcm = at(-60)
    pcm[:: 9 * RATE] = 10_000
    pcm[12 * RATE : 12 * RATE + RATE // 4] = 8_000
    spoken = unraised(at(-3)) > 0.5
    assert np.mean(found_in(tmp_path / "pcm", pcm)[spoken] > 0.5) > 0.6


def noise() -> npt.NDArray[np.float64]:
    return np.random.default_rng(1).standard_normal(SECONDS * RATE)


def hum() -> npt.NDArray[np.float64]:
    times = np.arange(SECONDS * RATE) / RATE
    return sum((np.sin(2 * np.pi * hz * times) for hz in (50, 100, 150)), np.zeros_like(times))


@pytest.mark.parametrize("decibels", [-45, -50, -60, -75, -84])
@pytest.mark.parametrize("sound", [noise, hum], ids=["noise", "hum"])
def test_nobody_speaks_in_quiet_noise(
    tmp_path: Path, sound: Callable[[], npt.NDArray[np.float64]], decibels: float
) -> None:
    assert found_in(tmp_path / "pcm", at(decibels, sound())).max() < 0.5


def test_nobody_speaks_in_silence(tmp_path: Path) -> None:
    assert found_in(tmp_path / "pcm", np.zeros(SECONDS * RATE, np.int16)).max() < 0.5


@pytest.mark.parametrize("question", [-20, -30])
def test_a_quiet_answer_to_a_loud_question_is_found(tmp_path: Path, question: float) -> None:
    turns = [
        at(decibels, sound[5 * RATE * turn : 5 * RATE * (turn + 1)])
        for turn in range(4)
        for decibels, sound in ((question, SPEECH), (question - 30, OTHER))
    ]
    found = found_in(tmp_path / "pcm", np.concatenate(turns)) > 0.5
    assert all(np.mean(answer) > 0.4 for answer in np.array_split(found, len(turns))[1::2])


def test_what_is_far_below_a_voice_is_no_other_voice(tmp_path: Path) -> None:
    talking = SPEECH[: 15 * RATE]
    pcm = np.concatenate((at(-10, talking), at(-50, OTHER), at(-10, talking)))
    np.testing.assert_array_equal(found_in(tmp_path / "pcm", pcm), unraised(pcm))


def test_bleed_of_a_loud_channel_is_no_voice(tmp_path: Path) -> None:
    for bleed in (-40, -50, -60):
        quiet = at(-6 + bleed)
        np.testing.assert_array_equal(found_in(tmp_path / "pcm", quiet, at(-6)), unraised(quiet))


def test_separate_channels_are_raised_together(tmp_path: Path) -> None:
    spoken = unraised(at(-3)) > 0.5
    silent = np.zeros_like(at(-60))
    assert np.mean(found_in(tmp_path / "pcm", at(-60), silent)[spoken] > 0.5) > 0.95
    assert found_in(tmp_path / "pcm", silent, at(-60)).max() < 0.5


def test_chunks_at_once_are_like_one_after_the_other(tmp_path: Path) -> None:
    pcm = np.concatenate((at(-58, talk(70, SPEECH)), at(-3, talk(20, SPEECH)), at(-58, talk(60, SPEECH))))
    at_once = found_in(tmp_path / "pcm", pcm)
    path = str(tmp_path / "pcm.0")
    chunks = [tasks.speech_probabilities(path, first, CHUNK_FRAMES) for first in range(0, 5000, CHUNK_FRAMES)]
    assert b"".join(chunks) == at_once.tobytes()


@given(levels)
def test_gains_raise_nothing_close_to_loud_sound_and_nothing_over_the_aim(levels: Floats) -> None:
    gains = quiet_sound.recording_gains(levels)
    assert (gains >= 1).all()
    for frame in np.flatnonzero(levels >= 10 ** (-45 / 20)):
        assert (gains[max(0, frame - AROUND) : frame + AROUND + 1] == 1).all()
    assert ((levels * gains)[gains > 1] <= 10 ** (-15 / 20) * 1.001).all()


@given(levels, st.lists(st.integers(1, 7), min_size=1))
@settings(deadline=None)
def test_live_gains_do_not_depend_on_how_the_sound_is_divided(levels: Floats, sizes: list[int]) -> None:
    expected, _ = quiet_sound.live_gains(levels, quiet_sound.NO_LEVELS)
    before, at, found = quiet_sound.NO_LEVELS, 0, []
    while at < len(levels):
        size = sizes[len(found) % len(sizes)]
        gains, before = quiet_sound.live_gains(levels[at : at + size], before)
        found.append(gains)
        at += size
    np.testing.assert_array_equal(np.concatenate(found), expected)
