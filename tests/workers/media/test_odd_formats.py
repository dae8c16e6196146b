"""Formats, codings and headers that FFmpeg misreads, does not know or guesses at."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import soundfile

from tests.media_files import GOOD, RATE, Pcm, encode, read_pcm, wav_header
from tests.workers.media import decoding
from workers.media import streams
from workers.messages import Decoded, RecordingRefused, Selection

SPEECH = read_pcm(Path(__file__).parents[2] / "data" / "short01.flac")
LARGE = (1 << 24).to_bytes(4) + b"free" + bytes((1 << 24) - 8)  # a box of MP4 that says nothing
ID3_BYTES = 1_500_000  # of a tag with a cover


def decode(content: bytes, folder: Path, start: int = 0) -> tuple[Decoded, Pcm]:
    return decoding.decode(folder, content, selection=Selection(start=start), find_peaks=not start)


def by_libsndfile(
    pcm: npt.NDArray[Any], form: str, subtype: str, endian: str | None = None, rate: int = RATE
) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, pcm, rate, subtype, endian, form)
    return file.getvalue()


def likeness(pcm: Pcm, original: Pcm = SPEECH) -> float:
    """The correlation with what was encoded at the delay where it is highest: 1 for the same sound."""
    size = len(pcm) + len(original)
    spectrum = np.fft.rfft(pcm, size) * np.conj(np.fft.rfft(original, size))
    energy = np.square(pcm, dtype=np.float64).sum() * np.square(original, dtype=np.float64).sum()
    return float(np.fft.irfft(spectrum, size)[: RATE // 8].max() / np.sqrt(energy))


def free_format_mp3(rate: int, bit_rate: int) -> bytes:
    """An MP3 file whose frames do not name their bit rate: all are of one size."""
    content = bytearray(
        encode(
            SPEECH,
            "mp3",
            "libmp3lame",
            rate=rate,
            bit_rate=bit_rate,
            options={"write_xing": "0", "id3v2_version": "0"},
        )
    )
    samples = 1152 if rate >= 32_000 else 576
    for frame in range(0, len(content), samples * bit_rate // 8 // rate):
        assert content[frame] == 0xFF
        content[frame + 2] &= 0x0F
    return bytes(content)


def behind_a_cover(content: bytes) -> bytes:
    size = bytes(ID3_BYTES >> shift & 0x7F for shift in (21, 14, 7, 0))
    return b"ID3\x04\0\0" + size + bytes(ID3_BYTES) + content


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "PCM_32", "FLOAT", "ULAW", "ALAW"])
def test_big_endian_wav(subtype: str, tmp_path: Path) -> None:
    pcm = SPEECH if subtype != "FLOAT" else SPEECH / np.float32(32768)
    step, decoded = decode(by_libsndfile(pcm, "WAV", subtype, "BIG"), tmp_path)
    assert step.declared == 0
    assert not step.warnings
    if subtype in ("ULAW", "ALAW"):
        assert likeness(decoded) > 0.999
    else:
        assert np.array_equal(decoded, SPEECH)


def test_broken_big_endian_wav(tmp_path: Path) -> None:
    content = wav_header(32_000, riff=b"RIFX") + SPEECH.tobytes()  # all numbers are little-endian
    with pytest.raises(RecordingRefused) as refused:
        decode(content, tmp_path)
    assert refused.value.code == "broken_file"


@pytest.mark.parametrize(
    ("form", "subtype"),
    [
        ("WAV", "G721_32"),
        ("AU", "G721_32"),
        ("AU", "G723_40"),
        ("WAV", "NMS_ADPCM_32"),
        ("AIFF", "DWVW_16"),
        ("SVX", "PCM_16"),
        ("PAF", "PCM_16"),
        ("AVR", "PCM_16"),
        ("PVF", "PCM_16"),
    ],
)
def test_what_libsndfile_decodes(form: str, subtype: str, tmp_path: Path) -> None:
    step, pcm = decode(by_libsndfile(SPEECH, form, subtype), tmp_path)
    assert len(pcm) == pytest.approx(len(SPEECH), abs=RATE // 50)
    assert likeness(pcm) > 0.995
    assert not step.warnings


def test_its_tracks_channels_and_parts(tmp_path: Path) -> None:
    both = np.stack((SPEECH, SPEECH // 4), 1)
    content = by_libsndfile(both, "WAV", "PCM_24", "BIG", 8000)
    step, whole = decode(content, tmp_path)
    assert len(whole) == 2 * len(SPEECH)
    [track] = step.tracks
    assert (track.codec, track.channels) == ("pcm_24", 2)
    _, part = decode(content, tmp_path, 3 * RATE)
    assert np.array_equal(part[3 * RATE :], whole[3 * RATE :])


@pytest.mark.parametrize(("rate", "bit_rate"), [(48_000, 64_000), (48_000, 128_000), (16_000, 32_000)])
@pytest.mark.parametrize("cover", [False, True])
def test_mp3_in_free_format(rate: int, bit_rate: int, cover: bool, tmp_path: Path) -> None:
    content = free_format_mp3(rate, bit_rate)
    step, pcm = decode(behind_a_cover(content) if cover else content, tmp_path)
    assert len(pcm) == pytest.approx(len(SPEECH), abs=RATE // 5)
    assert likeness(pcm) > 0.98
    assert step.declared == 0


@pytest.mark.parametrize("name", ["flac", "aac adts", "mp3 44.1 kHz stereo", "wav 16 bit", "ogg opus"])
def test_a_cover_before_the_sound(name: str, tmp_path: Path) -> None:
    content = GOOD[name].encode(SPEECH)
    _, expected = decode(content, tmp_path)
    step, pcm = decode(behind_a_cover(content), tmp_path)
    assert np.array_equal(pcm, expected)
    assert not step.warnings


@pytest.mark.parametrize(
    ("container", "codec", "rate"),
    [
        ("adx", "adpcm_adx", RATE),
        ("ast", "pcm_s16be_planar", RATE),
        ("mmf", "adpcm_yamaha", 8000),
        ("swf", "libmp3lame", 44_100),
        ("smjpeg", "pcm_s16le", RATE),
    ],
)
def test_formats_that_are_known_by_their_content(
    container: str, codec: str, rate: int, tmp_path: Path
) -> None:
    _, pcm = decode(encode(SPEECH, container, codec, rate=rate), tmp_path)
    assert len(pcm) == pytest.approx(len(SPEECH), abs=RATE // 10)
    assert likeness(pcm) > 0.98


def test_pauses_in_amr(tmp_path: Path) -> None:
    """They are frames of comfort noise, or empty ones."""
    twice = np.concatenate((SPEECH, SPEECH))
    content = encode(twice, "amr", "libopencore_amrnb", rate=8000, bit_rate=12_200)
    magic, frame_bytes = b"#!AMR\n", 32
    frames = [content[at : at + frame_bytes] for at in range(len(magic), len(content), frame_bytes)]
    assert {frame[0] for frame in frames} == {0x3C}  # 12.2 kbit/s
    pause = [b"\x44" + bytes(5), *[b"\x7c"] * 7] * 150  # 24 s
    middle = len(frames) // 2
    step, pcm = decode(magic + b"".join((*frames[:middle], *pause, *frames[middle:])), tmp_path)

    assert len(pcm) == (len(frames) + len(pause)) * RATE // 50
    assert not step.warnings
    _, expected = decode(content, tmp_path)
    after = len(pcm) - len(expected) // 2 + RATE
    assert likeness(pcm[after:], expected[after - len(pcm) :]) > 0.95


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("libopus", 48_000, "mono"), ("libopus", 48_000, "stereo")),
        (("vorbis", 44_100, "stereo"), ("vorbis", 48_000, "stereo")),
        (("flac", RATE, "mono"), ("flac", 44_100, "stereo")),
        (("flac", RATE, "mono"), ("libopus", 48_000, "mono")),
    ],
)
def test_an_ogg_file_goes_on_in_another_format(
    first: tuple[str, int, str], second: tuple[str, int, str], tmp_path: Path
) -> None:
    parts = [
        encode(SPEECH, "ogg", codec, rate=rate, layout=layout) for codec, rate, layout in (first, second)
    ]
    expected = [decode(part, tmp_path)[1] for part in parts]
    step, pcm = decode(b"".join((*parts, parts[1], parts[0])), tmp_path)
    assert not step.warnings
    last = len(expected[0])
    assert np.array_equal(pcm[:last], expected[0])
    assert np.array_equal(pcm[-last:], expected[0])
    middle = expected[1][: -RATE // 100]  # it goes on without a break
    assert np.array_equal(pcm[last : last + len(middle)], middle)
    assert len(pcm) == pytest.approx(4 * len(SPEECH), abs=RATE // 5)


def test_a_part_of_an_ogg_file_that_is_cut_off(tmp_path: Path) -> None:
    talk = encode(SPEECH, "ogg", "libopus", rate=48_000)
    other = encode(SPEECH, "ogg", "vorbis", rate=44_100, layout="stereo")
    step, pcm = decode(talk + other[:5000] + talk, tmp_path)
    assert [warning.code for warning in step.warnings] == ["undecodable"]
    for half in (pcm[: len(SPEECH)], pcm[-len(SPEECH) :]):
        assert likeness(half) > 0.95


def test_a_guessed_length_is_none(tmp_path: Path) -> None:
    """`watch` would take the recording for a short one."""
    path = tmp_path / "upload"
    for name, seconds in (("amr", 0.0), ("aac adts", 0.0), ("m4a aac", len(SPEECH) / RATE)):
        path.write_bytes(GOOD[name].encode(SPEECH))
        assert streams.read_streams(str(path)).seconds == pytest.approx(seconds, abs=0.1)


def overflowed(content: bytes) -> bytes:
    """A fragmented MP4 file whose last sample has a negative length."""
    box = content.rindex(b"trun")
    last = box - 4 + int.from_bytes(content[box - 4 : box]) - 8  # its length and size
    return content[:last] + b"\xff\xff\xf0\0" + content[last + 4 :]


def with_samples(flac: bytes, samples: int) -> bytes:
    """A FLAC file whose header gives another length."""
    return (
        flac[:21] + bytes([flac[21] & 0xF0 | samples >> 32]) + (samples & 0xFFFFFFFF).to_bytes(4) + flac[26:]
    )


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(
            lambda: by_libsndfile(SPEECH[: 6 * RATE : 2], "AIFF", "GSM610", rate=8000), id="gsm in aiff"
        ),
        pytest.param(
            lambda: encode(SPEECH, "ogg", "libopus", rate=48_000, audio_starts_at=30 * 3600), id="late ogg"
        ),
        pytest.param(lambda: overflowed(GOOD["fragmented mp4"].encode(SPEECH)), id="overflow"),
        pytest.param(
            lambda: overflowed(GOOD["fragmented mp4"].encode(SPEECH)) + LARGE, id="overflow in a large file"
        ),
        pytest.param(lambda: with_samples(GOOD["flac"].encode(SPEECH), (1 << 36) - 1), id="flac"),
    ],
)
def test_a_length_that_the_file_cannot_have_is_none(content: Any, tmp_path: Path) -> None:
    step, pcm = decode(content(), tmp_path)
    assert step.declared == 0
    assert likeness(pcm) > 0.9
    assert len(pcm) == pytest.approx(len(SPEECH), abs=RATE)
    assert not step.warnings
