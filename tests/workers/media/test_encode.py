"""Encoding copies and spans: the right samples at the right place."""

import errno
import io
import itertools
import math
import re
import resource
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.media_files import GOOD, RATE, Pcm, flac_of_silence, read_pcm, wav_header
from tests.media_mutations import damaged
from tests.workers.media.decoding import decode
from tests.workers.media.test_tasks import FORMATS, offset_s
from workers.media import encode as sound
from workers.media import sessions
from workers.media.decode import decoded_pcm
from workers.media.encode import EncodeRequest, EncodeStep
from workers.media.findings import Findings
from workers.messages import RecordingRefused

names = (f"session-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def speech() -> Pcm:
    return read_pcm(Path(__file__).parents[2] / "data" / "short01.flac")


@pytest.fixture
def stereo(tmp_path: Path, speech: Pcm) -> tuple[Path, Pcm]:
    """A WAV file of 44.1 kHz with two different channels, and its samples: shape (n, 2)."""
    noise = np.random.default_rng(3).integers(-3000, 3000, len(speech), dtype=np.int16)
    samples = np.stack([speech, noise], axis=1)
    path = tmp_path / "stereo.wav"
    path.write_bytes(wav_header(samples.nbytes, channels=2, rate=44_100) + samples.tobytes())
    return path, samples


def encode(source: Path, form: str = "flac", seconds: float = 60.0, **span: float) -> tuple[EncodeStep, Path]:
    target = source.with_suffix(f".copy.{form}")
    target.write_bytes(b"what an earlier worker wrote" * 10_000)
    session = next(names)
    request = EncodeRequest(str(source), str(target), form, **span)  # type: ignore[arg-type]
    while not (step := sound.encode(session, request, seconds)).finished:
        pass
    assert not sessions._open
    return step, target


def samples_of(path: Path | bytes) -> Pcm:
    """The samples of a file: shape (n, channels)."""
    file = io.BytesIO(path) if isinstance(path, bytes) else str(path)
    return soundfile.read(file, dtype="int16", always_2d=True)[0]


def own_samples(path: Path) -> Pcm:
    """A recording as the worker decodes it for a copy: shape (n, channels)."""
    findings = Findings()
    pcm = b"".join(decoded_pcm(path, findings, output=None))
    return np.frombuffer(pcm, "<i2").reshape(-1, findings.pcm_format.channels)


def test_a_flac_copy_of_stereo_has_the_samples_of_the_recording(stereo):
    path, samples = stereo
    step, copy = encode(path)
    assert np.array_equal(samples_of(copy), samples)
    assert soundfile.info(str(copy)).samplerate == 44_100
    assert step == EncodeStep(
        len(samples) / 44_100, len(samples), copy.stat().st_size, True, len(samples) / 44_100, 44_100 * 4
    )


@pytest.mark.parametrize("name", FORMATS)
def test_copies_of_every_format_are_in_time_with_the_transcript(tmp_path, speech, name):
    path = tmp_path / "recording"
    path.write_bytes(GOOD[name].encode(speech[: 4 * RATE]))
    transcribed = decode(tmp_path, path)[1].astype(int)
    _, flac = encode(path)
    info = soundfile.info(str(flac))
    rate, layout = GOOD[name].options.get("rate", RATE), GOOD[name].options.get("layout", "mono")
    assert info.samplerate == min(rate, 48_000)
    assert info.channels == (2 if layout == "stereo" else 1)
    assert np.array_equal(samples_of(flac), own_samples(path))
    copied = decode(tmp_path, flac)[1].astype(int)
    assert len(copied) == pytest.approx(len(transcribed), abs=2)
    size = min(len(copied), len(transcribed))
    assert np.abs(copied[:size] - transcribed[:size]).max() <= 40  # rounded twice, and 96 kHz filtered twice
    _, ogg = encode(path, "ogg")
    assert soundfile.info(str(ogg)).format == "OGG"
    assert len(samples_of(ogg)) == len(samples_of(flac))
    copied = decode(tmp_path, ogg)[1]
    assert offset_s(transcribed, copied) == 0
    size = min(len(copied), len(transcribed))
    assert np.corrcoef(copied[:size], transcribed[:size])[0, 1] > 0.9


SPANS = [(0.0, 0.1), (0.333333, 2.000017), (1.0, 1.00003), (1.99999, math.inf), (0.0, math.inf)]


@pytest.mark.parametrize("from_copy", [False, True])
@pytest.mark.parametrize(("start_s", "end_s"), SPANS)
def test_a_span_has_the_very_samples_of_its_place(stereo, start_s, end_s, from_copy):
    path, samples = stereo
    source = encode(path)[1].rename(path.with_name("whole.flac")) if from_copy else path
    step, copy = encode(source, start_s=start_s, end_s=end_s)
    end = len(samples) if math.isinf(end_s) else round(end_s * 44_100)
    expected = samples[round(start_s * 44_100) : end]
    assert len(expected)
    assert np.array_equal(samples_of(copy), expected)
    assert step.samples == len(expected)


@pytest.mark.parametrize("name", ["mp3 44.1 kHz stereo", "mp4 video aac", "ogg vorbis"])
def test_spans_are_parts_of_the_copy(tmp_path, speech, name):
    path = tmp_path / "recording"
    path.write_bytes(GOOD[name].encode(speech))
    whole = samples_of(encode(path)[1])
    rate = GOOD[name].options["rate"]
    for start_s, end_s in SPANS:
        end = len(whole) if math.isinf(end_s) else round(end_s * rate)
        _, span = encode(path, start_s=start_s, end_s=end_s)
        assert np.array_equal(samples_of(span), whole[round(start_s * rate) : end])


@pytest.mark.parametrize("from_copy", [False, True])
def test_a_span_behind_the_end_says_how_long_the_recording_is(stereo, from_copy):
    path, samples = stereo
    source = encode(path)[1].rename(path.with_name("whole.flac")) if from_copy else path
    for start_s, end_s in ((1.0, 1e6), (1e6, math.inf)):
        step, _ = encode(source, start_s=start_s, end_s=end_s)
        assert step.decoded_s == pytest.approx(len(samples) / 44_100)
        assert bool(step.samples) is (start_s == 1.0)


def test_a_span_of_ogg_begins_at_its_place(stereo):
    path, samples = stereo
    _, copy = encode(path, "ogg", start_s=0.7, end_s=2.2)
    copied = samples_of(copy)
    assert len(copied) == 1.5 * 44_100
    expected = samples[round(0.7 * 44_100) :][: len(copied)]
    copied, expected = copied[:, 0], expected[:, 0]
    correlations = [np.corrcoef(np.roll(copied, shift), expected)[0, 1] for shift in range(-5, 6)]
    assert np.argmax(correlations) == 5
    assert correlations[5] > 0.95


@pytest.mark.parametrize("seconds", [0.001, 1.5, 1000.0])
def test_a_copy_does_not_depend_on_the_length_of_its_steps(stereo, seconds):
    path, samples = stereo
    _, copy = encode(path, seconds=seconds)
    assert np.array_equal(samples_of(copy), samples)


def test_a_copy_does_not_depend_on_how_long_its_steps_take(stereo, monkeypatch):
    expected = encode(stereo[0])[1].read_bytes()
    monkeypatch.setattr("workers.calls.has_taken_long", lambda began_s, usual_s: True)
    assert encode(stereo[0])[1].read_bytes() == expected


def test_another_worker_starts_again_from_the_beginning(tmp_path, speech):
    path, target = tmp_path / "recording", tmp_path / "copy"
    path.write_bytes(GOOD["mp3 16 kHz"].encode(np.resize(speech, 30 * RATE)))
    target.touch()
    request = EncodeRequest(str(path), str(target), "flac")
    assert not sound.encode("crashed", request, 5.0).finished
    while not sound.encode("other", request, 5.0).finished:
        pass
    assert np.array_equal(samples_of(target), own_samples(path))
    sessions.close("crashed")
    sessions.close("crashed")  # has no effect


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.soak) for n in range(2, 8))])
def test_a_copy_of_a_damaged_recording_has_what_is_transcribed(tmp_path, speech, seed):
    path = tmp_path / "recording"
    path.write_bytes(damaged(GOOD["mp3 16 kHz"].encode(np.resize(speech, 20 * RATE)), seed))
    try:
        transcribed = decode(tmp_path, path)[1]
    except RecordingRefused as refused:
        with pytest.raises(RecordingRefused, match=re.escape(refused.message)):
            encode(path)
        return
    copy = samples_of(encode(path)[1])
    assert len(copy) == len(own_samples(path))
    assert len(copy) / soundfile.info(str(tmp_path / "recording.copy.flac")).samplerate == pytest.approx(
        len(transcribed) / RATE, abs=0.2
    )


@pytest.mark.parametrize("form", ["flac", "ogg"])
def test_a_full_disk_is_an_error_with_its_number(stereo, form):
    """libsndfile reports it without one, or not at all."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        path = stereo[0]
        target = path.with_name("copy")
        target.touch()
        with pytest.raises(OSError, match=f"Errno {errno.EFBIG}"):
            sound.encode("full", EncodeRequest(str(path), str(target), form), 60.0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not sessions._open


def test_a_step_without_its_file_creates_none(stereo):
    path, _ = stereo
    target = path.with_name("given up")
    with pytest.raises(FileNotFoundError):
        sound.encode("late", EncodeRequest(str(path), str(target), "flac"), 60.0)
    assert not target.exists()


def test_low_rates_are_raised_to_what_every_player_knows(tmp_path):
    path = tmp_path / "recording"
    path.write_bytes(flac_of_silence(1 / 60))  # 1000 Hz
    for form in ("flac", "ogg"):
        _, copy = encode(path, form)
        assert (soundfile.info(str(copy)).samplerate, len(samples_of(copy))) == (8000, 60 * 8000)
