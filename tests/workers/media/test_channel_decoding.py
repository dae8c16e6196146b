"""Each channel of a recording in a file of its own."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.media_files import RATE, Pcm, encode, film, read_pcm
from tests.workers.media.decoding import read, steps_of
from workers.media.channels import ChannelFiles
from workers.messages import MAX_SEPARATE_CHANNELS, Decoded, RecordingRefused, Selection

SPEECH = read_pcm(Path(__file__).parents[2] / "data" / "short01.flac")


def decode(
    folder: Path, content: bytes, *, selection: Selection = Selection(), raw: bool = False
) -> tuple[Decoded, list[Pcm]]:
    """The last step, and the content of each file."""
    (folder / "upload").write_bytes(content)
    paths = [folder / f"pcm.{channel}" for channel in range(MAX_SEPARATE_CHANNELS)]
    # In small steps: the first has nothing but the headers for some files.
    [*_, step] = steps_of(folder / "upload", paths, RATE, raw=raw, selection=selection)
    return step, [read(path) for path in paths[: step.files]]


def recording(channels: Sequence[Pcm], rate: int = RATE, form: str = "WAV", **how: str) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, np.stack(channels, 1), rate, format=form, **how)
    return file.getvalue()


def noise(seed: int, level: float = 2000, seconds: float = 3) -> Pcm:
    random = np.random.default_rng(seed)
    return random.normal(scale=level, size=round(seconds * RATE)).astype(np.int16)


@pytest.mark.parametrize("channels", range(1, MAX_SEPARATE_CHANNELS + 1))
@pytest.mark.parametrize("form", ["WAV", "FLAC"])
def test_each_channel_is_exactly_that_of_the_file(tmp_path: Path, channels: int, form: str) -> None:
    expected = [noise(seed) for seed in range(channels)]
    step, found = decode(tmp_path, recording(expected, form=form))
    assert (step.files, step.channels) == (channels, tuple(range(channels)))
    assert all(np.array_equal(*pair) for pair in zip(found, expected, strict=True))


def test_channels_are_resampled_as_a_recording_of_their_own(tmp_path: Path) -> None:
    channels = [noise(seed) for seed in range(3)]
    _, together = decode(tmp_path, recording(channels, 44_100))
    for channel, found in zip(channels, together, strict=True):
        _, [alone] = decode(tmp_path, recording([channel], 44_100))
        assert np.abs(found.astype(int) - alone).max() <= 1


def test_a_part_has_a_hole_before_it_in_each_file(tmp_path: Path) -> None:
    expected = [noise(seed) for seed in range(2)]
    start, end = RATE // 3, 2 * RATE
    step, found = decode(tmp_path, recording(expected), selection=Selection(start=start, end=end))
    assert step.samples == end
    for channel, samples in zip(expected, found, strict=True):
        assert np.array_equal(samples[start:], channel[start:end])
        assert not samples[:start].any()


def test_the_peaks_are_those_of_the_mix(tmp_path: Path) -> None:
    step, channels = decode(tmp_path, recording([noise(1, seconds=0.9), noise(2, seconds=0.9)]))
    mix = np.mean(channels, 0)[: 320 * (len(channels[0]) // 320)].reshape(-1, 320)
    lowest, highest = np.frombuffer(step.peaks, "<i2").reshape(-1, 2)[: len(mix)].T
    assert np.abs(lowest - mix.min(1)).max() <= 1
    assert np.abs(highest - mix.max(1)).max() <= 1


@pytest.mark.parametrize(
    ("container", "codec", "rate"),
    [
        ("mp3", "libmp3lame", 44_100),
        ("ogg", "libopus", 48_000),
        ("mp4", "aac", 48_000),
        ("wav", "pcm_s16le", 8000),
    ],
)
def test_a_mono_recording_in_stereo_is_one_channel(
    tmp_path: Path, container: str, codec: str, rate: int
) -> None:
    step, _ = decode(tmp_path, encode(SPEECH, container, codec, rate=rate, layout="stereo"))
    assert (step.files, step.channels) == (2, (0,))


def test_channels_that_differ_by_little_noise_are_the_same(tmp_path: Path) -> None:
    for level, distinct in ((5, (0,)), (200, (0, 1))):
        step, _ = decode(tmp_path, recording([SPEECH, SPEECH + noise(1, level, 60)[: len(SPEECH)]]))
        assert step.channels == distinct, level


@pytest.mark.parametrize("level", [1.0, 0.995])
def test_a_channel_upside_down_is_the_same(tmp_path: Path, level: float) -> None:
    copy = np.rint(-level * SPEECH.clip(-32767) + noise(1, 5, 60)[: len(SPEECH)]).clip(-32768, 32767)
    step, _ = decode(
        tmp_path, recording([SPEECH, copy.astype(np.int16), noise(2, seconds=len(SPEECH) / RATE)])
    )
    assert step.channels == (0, 2)


def test_a_channel_that_is_upside_down_in_one_second_differs(tmp_path: Path) -> None:
    other = SPEECH.clip(-32767).copy()
    other[RATE : 2 * RATE] *= -1
    assert decode(tmp_path, recording([SPEECH, other]))[0].channels == (0, 1)


def test_one_word_that_is_on_one_channel_only_makes_two(tmp_path: Path) -> None:
    talk = np.resize(SPEECH, 60 * RATE)
    other = talk.copy()
    other[30 * RATE : 30 * RATE + RATE // 3] = 0
    assert decode(tmp_path, recording([talk, other]))[0].channels == (0, 1)


def test_equal_channels_among_others_count_once(tmp_path: Path) -> None:
    first, second, silence = noise(1), noise(2), np.zeros(3 * RATE, np.int16)
    step, _ = decode(tmp_path, recording([first, silence, first, second, silence, second]))
    assert step.channels == (0, 1, 3)


def test_more_than_eight_channels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingRefused) as refused:
        decode(tmp_path, recording([noise(seed) for seed in range(9)]))
    assert refused.value.code == "too_many_channels"
    assert "9 channels; at most 8" in refused.value.message


def test_raw_pcm_is_one_channel(tmp_path: Path) -> None:
    step, [found] = decode(tmp_path, SPEECH.tobytes(), raw=True)
    assert (step.files, step.channels) == (1, (0,))
    assert np.array_equal(found, SPEECH)


def test_a_track_of_a_film(tmp_path: Path) -> None:
    content = film({"ger": SPEECH, "eng": SPEECH[::-1].copy()}, default=1)
    step, [found] = decode(tmp_path, content, selection=Selection(track=1))
    assert step.channels == (0,)
    assert np.array_equal(found[: len(SPEECH)], SPEECH[::-1])


def test_files_of_an_earlier_run_are_overwritten_and_cut(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(2)]
    for path in paths:
        path.write_bytes(bytes(range(100)))
    files = ChannelFiles(paths, 3)
    files.write(np.array([[1, 2], [3, 4]], "<i2").tobytes(), 2)
    assert files.finish() == (0, 1)
    files.close()
    for path, samples in zip(paths, ([1, 3], [2, 4]), strict=True):
        assert path.read_bytes() == bytes(range(6)) + np.array(samples, "<i2").tobytes()
