"""Audio of live streams: converted, stored and examined alike, however it is divided."""

from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
import pytest
import soundfile

from workers.media.live_speech import detect
from workers.media.silero import SileroModel, framed
from workers.messages import (
    ALAW,
    BYTES_PER_SAMPLE,
    FRAME_SAMPLES,
    PCM_16K,
    PCM_24K,
    ULAW,
    CarriedAudio,
    DetectedSpeech,
    Encoding,
    NewAudio,
)

TALK = Path(__file__).parents[2] / "data/short01.flac"
LOUD = 2000
FILTER_SAMPLES = 100  # at the end, which the next audio would complete

Floats = npt.NDArray[np.float32]
Samples = npt.NDArray[np.int16]


def talk() -> Samples:
    samples: Samples = soundfile.read(TALK, dtype="int16")[0]
    return samples


def resampled(samples: Samples, rate: int, layout: str = "s16") -> Samples:
    """By FFmpeg, whatever it does at both ends."""
    frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), "s16", "mono")
    frame.sample_rate = 16_000
    resampler = av.AudioResampler("s16", "mono", rate)
    parts = [part.to_ndarray() for part in (*resampler.resample(frame), *resampler.resample(None))]
    return np.concatenate(parts, axis=1).reshape(-1).astype(np.int16)


def detected_in(path: Path, audio: bytes, encoding: Encoding, sizes: list[int]) -> tuple[Floats, Samples]:
    """The probabilities and the stored samples of audio in parts of these sizes (bytes), in turns."""
    carried = CarriedAudio(encoding)
    found = [np.zeros(0, np.float32)]
    turn = 0
    while audio:
        size = sizes[turn % len(sizes)] * encoding.bytes_per_sample
        [answer] = detect([NewAudio(str(path), audio[:size], carried)])
        assert isinstance(answer, DetectedSpeech)
        carried, audio, turn = answer.carried, audio[size:], turn + 1
        found.append(np.frombuffer(answer.probabilities, np.float32))
    return np.concatenate(found), np.fromfile(path, "<i2")


@pytest.mark.parametrize("sizes", [[1_000_000], [320], [1, 511, 512, 513, 7]])
def test_speech_is_found_as_in_a_recording(tmp_path: Path, sizes: list[int]) -> None:
    samples = talk()
    found, stored = detected_in(tmp_path / "pcm", samples.tobytes(), PCM_16K, sizes)
    whole = len(samples) // FRAME_SAMPLES * FRAME_SAMPLES
    expected, _ = SileroModel().probabilities(framed(samples[:whole]))
    loud = int(np.argmax(np.abs(samples) > LOUD)) // FRAME_SAMPLES + 4  # the silence before it is raised
    assert np.array_equal(stored, samples)
    assert np.allclose(found[loud:], expected[loud:], atol=1e-5)
    assert np.array_equal(found > 0.5, expected > 0.5)


@pytest.mark.parametrize("sizes", [[1_000_000], [320], [1, 511, 512, 513, 7]])
def test_a_quiet_voice_is_found_as_a_loud_one(tmp_path: Path, sizes: list[int]) -> None:
    samples = talk()
    quiet = np.rint(samples * (33 / np.abs(samples).max())).astype(np.int16)  # -60 dBFS
    found, _ = detected_in(tmp_path / "pcm", quiet.tobytes(), PCM_16K, sizes)
    loud, _ = detected_in(tmp_path / "pcm", samples.tobytes(), PCM_16K, sizes)
    assert np.mean((found > 0.5) == (loud > 0.5)) > 0.95


def test_a_pause_of_somebody_who_talks_makes_no_voice_of_a_television(tmp_path: Path) -> None:
    samples = talk()
    television = np.tile(samples // 600, 10)  # at -60 dBFS
    stream = np.concatenate((samples, television))
    found, _ = detected_in(tmp_path / "pcm", stream.tobytes(), PCM_16K, [960])
    expected, _ = SileroModel().probabilities(framed(stream))
    frames = len(television) // FRAME_SAMPLES
    assert np.allclose(found[-frames:], expected[-frames - 1 : -1], atol=1e-5)
    alone, _ = detected_in(tmp_path / "alone", television.tobytes(), PCM_16K, [960])
    assert np.mean(alone > 0.5) > 3 * np.mean(found[-frames:] > 0.5), "a voice, if nobody is louder"


@pytest.mark.parametrize(
    ("rate", "sizes"),
    [
        (24_000, [480]),
        (24_000, [1, 2, 3, 1000]),
        *((rate, [960, 1, 77]) for rate in (8_000, 11_025, 22_050, 44_100, 48_000, 96_000)),
    ],
)
def test_audio_at_other_rates_becomes_that_at_16_khz(tmp_path: Path, rate: int, sizes: list[int]) -> None:
    samples = talk()
    if rate < 16_000:  # without what that cannot hold
        spectrum = np.fft.rfft(samples)
        spectrum[len(spectrum) * rate * 2 // 5 // 8_000 :] = 0
        samples = np.rint(np.fft.irfft(spectrum, len(samples))).astype(np.int16)
    audio, encoding = resampled(samples, rate).tobytes(), Encoding(rate)
    whole = detected_in(tmp_path / "whole", audio, encoding, [1_000_000])[1]
    in_parts = detected_in(tmp_path / "parts", audio, encoding, sizes)[1]
    assert np.array_equal(whole, in_parts)
    common = min(len(samples), len(whole)) - FILTER_SAMPLES
    noise = whole[FILTER_SAMPLES:common].astype(float) - samples[FILTER_SAMPLES:common]
    signal = samples[FILTER_SAMPLES:common].astype(float)
    assert 10 * np.log10(np.mean(signal**2) / np.mean(noise**2)) > 25  # dB


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_other_widths_and_channels_become_one_channel_of_16_bits(tmp_path: Path, width: int) -> None:
    samples = talk()
    deep = (samples.astype(np.int64) << 16).repeat(2).reshape(-1, 2)
    deep[:, 0] += 1 << 24  # the mean of both is half of that above
    deep = np.clip(deep, -(1 << 31), (1 << 31) - 1)
    as_bytes = deep.astype("<i4").view("u1").reshape(-1, 4)[:, 4 - width :]
    audio = (as_bytes + 128 if width == 1 else as_bytes).astype("u1").tobytes()
    stored = detected_in(tmp_path / "pcm", audio, Encoding(width=width, channels=2), [480])[1]
    assert np.abs(stored.astype(int) - samples - 128).max() <= (1 if width > 1 else 256)


def test_what_16_khz_cannot_hold_is_filtered(tmp_path: Path) -> None:
    tone = (20_000 * np.sin(2 * np.pi * 10_000 * np.arange(24_000) / 24_000)).astype(np.int16)
    stored = detected_in(tmp_path / "pcm", tone.tobytes(), PCM_24K, [480])[1]
    assert np.abs(stored[FILTER_SAMPLES:]).max() < 20


def test_noise_stays_up_to_8_khz(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).normal(0, 3000, 48_000).astype(np.int16)
    stored = detected_in(tmp_path / "pcm", noise.tobytes(), PCM_24K, [480])[1]
    power = np.abs(np.fft.rfft(stored)) ** 2
    of_khz = [part.mean() for part in np.array_split(power, 8)]
    assert of_khz[7] > 0.8 * of_khz[3]


@pytest.mark.parametrize(("encoding", "codec"), [(ULAW, "pcm_mulaw"), (ALAW, "pcm_alaw")])
def test_telephone_audio_is_decoded_as_by_ffmpeg(tmp_path: Path, encoding: Encoding, codec: str) -> None:
    decoder = av.CodecContext.create(codec, "r")
    decoder.sample_rate, decoder.layout = 8000, "mono"
    audio = bytes(range(256)) * 8
    [frame] = decoder.decode(av.Packet(audio))
    expected = frame.to_ndarray().reshape(-1)
    stored = detected_in(tmp_path / "pcm", audio, encoding, [160])[1]
    # Every other sample at 16 kHz stands for one at 8 kHz, but for what the filter takes off at the top.
    middle = slice(FILTER_SAMPLES, len(expected) - FILTER_SAMPLES)
    correlation = np.corrcoef(stored[::2][: len(expected)][middle], expected[: len(stored[::2])][middle])
    assert correlation[0, 1] > 0.8


def test_a_file_that_cannot_be_written_is_the_fault_of_its_stream_alone(tmp_path: Path) -> None:
    audio = bytes(FRAME_SAMPLES * BYTES_PER_SAMPLE)
    missing, answer = detect(
        [
            NewAudio(str(tmp_path / "none" / "pcm"), audio, CarriedAudio()),
            NewAudio(str(tmp_path / "pcm"), audio, CarriedAudio()),
        ]
    )
    assert isinstance(missing, OSError)
    assert isinstance(answer, DetectedSpeech)
    assert answer.carried.position == FRAME_SAMPLES


def test_a_new_file_has_what_came_before_at_its_place(tmp_path: Path) -> None:
    samples = talk()[: 20 * FRAME_SAMPLES]
    first, second = samples[: 10 * FRAME_SAMPLES], samples[10 * FRAME_SAMPLES :]
    old, new = tmp_path / "old", tmp_path / "new"
    [answer] = detect([NewAudio(str(old), first.tobytes(), CarriedAudio())])
    assert isinstance(answer, DetectedSpeech)
    kept = 4 * FRAME_SAMPLES
    detect([NewAudio(str(new), second.tobytes(), answer.carried, (str(old), kept))])
    assert np.array_equal(np.fromfile(new, "<i2")[kept:], samples[kept:])
