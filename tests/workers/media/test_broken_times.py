"""Real files whose times are wrong, start anew, stand still or are missing, as recorders write them."""

import io
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from tests.media_files import GOOD, RATE, Pcm, encode, read_pcm, talk
from workers.media.decode import decoded_pcm
from workers.media.findings import Findings

PACKET = 188  # bytes, of MPEG-TS
FIRST_PID = 256  # of the streams that FFmpeg writes

Times = Callable[[float], float]  # what becomes of a time in seconds


@pytest.fixture(scope="module")
def speech() -> Pcm:
    return read_pcm(Path(__file__).parents[2] / "data" / "short01.flac")


@pytest.fixture(scope="module")
def long_speech(speech: Pcm) -> Pcm:
    """20 s, of which no part is like another."""
    hum = np.cumsum(np.random.default_rng(1).integers(-40, 41, 20 * RATE))
    return (talk(20, speech) // 2 + np.clip(hum, -9000, 9000)).astype(np.int16)


def decode(content: bytes, folder: Path) -> tuple[Pcm, list[str]]:
    """The sound of a file, and the codes of its warnings."""
    (folder / "file").write_bytes(content)
    findings = Findings()
    pcm = np.frombuffer(b"".join(decoded_pcm(folder / "file", findings)), "<i2")
    return pcm, [warning.code for warning in findings.warnings()]


def ts(pcm: Pcm, starts_at: float = 0.0, pid: int = FIRST_PID) -> bytes:
    """MPEG-TS with AAC, of which a PES packet holds several."""
    return encode(
        pcm, "mpegts", "aac", rate=48_000, audio_starts_at=starts_at, options={"mpegts_start_pid": str(pid)}
    )


def with_times(content: bytes, times: Times) -> bytes:
    """MPEG-TS with other times of its sound."""
    changed = bytearray(content)
    for start in pes_starts(content):
        at = start + 4 + (1 + changed[start + 4] if changed[start + 3] & 0x20 else 0) + 9
        old = int.from_bytes(changed[at : at + 5])
        ticks = (old >> 33 & 7) << 30 | (old >> 17 & 0x7FFF) << 15 | old >> 1 & 0x7FFF
        ticks = round(times(ticks / 90_000) * 90_000)
        new = old >> 36 << 36 | (ticks >> 30) << 33 | (ticks >> 15 & 0x7FFF) << 17 | (ticks & 0x7FFF) << 1
        changed[at : at + 5] = (new | 1 << 32 | 1 << 16 | 1).to_bytes(5)
    return bytes(changed)


def pes_starts(content: bytes) -> list[int]:
    """Where the packets of MPEG-TS are in which a PES packet of the sound begins."""
    heads = range(0, len(content), PACKET)
    return [at for at in heads if int.from_bytes(content[at + 1 : at + 3]) & 0x5FFF == 0x4000 | FIRST_PID]


def flv_with_times(content: bytes, times: Times) -> bytes:
    changed, at = bytearray(content), 13
    while at < len(changed):
        if changed[at] == 8:
            stamp = changed[at + 7 : at + 8] + changed[at + 4 : at + 7]
            stamp = round(times(int.from_bytes(stamp) / 1000) * 1000).to_bytes(4)
            changed[at + 4 : at + 8] = stamp[1:] + stamp[:1]
        at += 15 + int.from_bytes(changed[at + 1 : at + 4])
    return bytes(changed)


def with_packets(content: bytes, container: str, change: Callable[[Any], bool]) -> bytes:
    """A file with those packets of another one that `change` keeps; it may give them other times."""
    file = io.BytesIO()
    with av.open(io.BytesIO(content)) as source, av.open(file, "w", format=container) as target:
        stream = target.add_stream_from_template(source.streams.audio[0])
        for packet in source.demux(audio=0):
            if packet.pts is not None and change(packet):
                packet.stream = stream
                target.mux(packet)
    return file.getvalue()


@pytest.mark.parametrize("back", [0.3, 2.0, 9.0])
def test_a_clock_that_goes_back_again_and_again(back: float, long_speech: Pcm, tmp_path: Path) -> None:
    content = ts(long_speech)
    changed = with_times(content, lambda time: time + 100 - back * (time // 4))
    assert changed != content
    pcm, warnings = decode(changed, tmp_path)
    assert np.array_equal(pcm, decode(content, tmp_path)[0])
    assert not warnings


@pytest.mark.parametrize(
    ("container", "codec", "rate"),
    [
        ("mpegts", "aac", 48_000),
        ("ogg", "libopus", 48_000),
        ("ogg", "flac", RATE),
        ("flac", "flac", RATE),
        ("matroska", "flac", RATE),
        ("webm", "libopus", 48_000),
        ("flv", "aac", 44_100),
    ],
)
def test_joined_pieces_follow_one_another(
    container: str, codec: str, rate: int, long_speech: Pcm, tmp_path: Path
) -> None:
    seconds = [0, 3, 7.5, 9, 16]
    pieces = [
        encode(long_speech[round(start * RATE) : round(end * RATE)], container, codec, rate=rate)
        for start, end in pairwise(seconds)
    ]
    alone = [decode(piece, tmp_path)[0] for piece in pieces]
    pcm, warnings = decode(b"".join(pieces), tmp_path)
    assert len(pcm) == pytest.approx(sum(map(len, alone)), abs=RATE // 10)
    assert not warnings


@pytest.mark.parametrize("headers", [1, 3], ids=["one header", "three headers"])
def test_fragments_of_mp4_whose_clock_starts_anew(headers: int, long_speech: Pcm, tmp_path: Path) -> None:
    options = {"movflags": "empty_moov+default_base_moof", "frag_duration": "2000000"}
    pieces = [
        encode(long_speech[start * RATE : (start + 5) * RATE], "mp4", "aac", rate=48_000, options=options)
        for start in range(0, 15, 5)
    ]
    alone = [decode(piece, tmp_path)[0] for piece in pieces]
    content = b"".join(pieces[:headers] + [piece[piece.index(b"moof") - 4 :] for piece in pieces[headers:]])
    pcm, warnings = decode(content, tmp_path)
    assert len(pcm) == pytest.approx(sum(map(len, alone)), abs=RATE // 5)
    assert not warnings


@pytest.mark.parametrize("wrong_by", [25.0, 6.0, 0.5, -0.5, -6.0, 4000.0])
def test_a_few_wrong_times_move_no_sound(wrong_by: float, long_speech: Pcm, tmp_path: Path) -> None:
    content = ts(long_speech, starts_at=10.0)
    changed = with_times(content, lambda time: time + (wrong_by if 16 < time < 16.9 else 0))
    assert changed != content
    pcm, warnings = decode(changed, tmp_path)
    assert np.array_equal(pcm, decode(content, tmp_path)[0])
    assert not warnings


@pytest.mark.parametrize("times", [lambda time: 0, lambda time: min(time, 7), lambda time: time // 2 * 2])
def test_times_that_stand_still(times: Times, long_speech: Pcm, tmp_path: Path) -> None:
    content = encode(long_speech, "flv", "aac", rate=44_100)
    pcm, warnings = decode(flv_with_times(content, times), tmp_path)
    assert np.array_equal(pcm, decode(content, tmp_path)[0])
    assert not warnings


def test_silence_of_more_than_an_hour(speech: Pcm, tmp_path: Path) -> None:
    content = encode(speech, "matroska", "pcm_s16le", clock_jumps={3: 3700.0})
    pcm, warnings = decode(content, tmp_path)
    assert len(pcm) == len(speech) + 3700 * RATE
    assert np.array_equal(pcm[3703 * RATE :], speech[3 * RATE :])
    assert warnings == ["gap"]


def test_sound_that_goes_on_under_another_number(long_speech: Pcm, tmp_path: Path) -> None:
    halves = ts(long_speech[: 10 * RATE]), ts(long_speech[10 * RATE :], starts_at=10.0, pid=300)
    pcm, warnings = decode(b"".join(halves), tmp_path)
    assert len(pcm) == pytest.approx(len(long_speech), abs=RATE // 10)
    assert not warnings


def test_an_adts_file_whose_rate_changes(long_speech: Pcm, tmp_path: Path) -> None:
    pieces = [encode(long_speech, "adts", "aac", rate=rate) for rate in (16_000, 48_000, 16_000)]
    alone = [decode(piece, tmp_path)[0] for piece in pieces]
    pcm, warnings = decode(b"".join(pieces), tmp_path)
    assert len(pcm) == pytest.approx(sum(map(len, alone)), abs=RATE // 50)
    assert not warnings

    chunks = decoded_pcm(tmp_path / "file", findings := Findings(), start_s=50.0)
    next(chunks)
    assert findings.skipped_s == 0, "FFmpeg does not know where the second 50 is"
    chunks.close()


@pytest.mark.parametrize(("mode", "size"), [(8, 6), (15, 1)])
def test_pauses_in_amr_last_as_long_as_they_did(mode: int, size: int, speech: Pcm, tmp_path: Path) -> None:
    content = GOOD["amr"].encode(speech)
    pause = bytes([mode << 3 | 4]).ljust(size, b"\0") * 100  # 2 s
    at = 6 + 100 * 13
    pcm, warnings = decode(content[:at] + pause + content[at:], tmp_path)
    alone, _ = decode(content, tmp_path)
    assert len(pcm) == len(alone) + 2 * RATE
    assert not warnings


def test_frames_that_a_decoder_calls_corrupt_are_counted(speech: Pcm, tmp_path: Path) -> None:
    content = encode(speech, "ac3", "ac3", rate=48_000)
    changed, rng = bytearray(content), np.random.default_rng(2)
    with av.open(io.BytesIO(content)) as source:
        for packet in source.demux(audio=0):
            if packet.pts is not None and 2 <= packet.pts * packet.time_base < 4:
                changed[packet.pos + 10 : packet.pos + packet.size] = rng.bytes(packet.size - 10)
    pcm, warnings = decode(bytes(changed), tmp_path)
    assert len(pcm) == len(decode(content, tmp_path)[0])
    assert warnings == ["undecodable"]


def test_an_empty_packet_is_no_damage(speech: Pcm, tmp_path: Path) -> None:
    """FFmpeg writes one behind FLAC in NUT."""
    pcm, warnings = decode(encode(speech, "nut", "flac"), tmp_path)
    assert np.array_equal(pcm, speech)
    assert not warnings


def test_joined_mp3_files_with_tags(speech: Pcm, tmp_path: Path) -> None:
    content = GOOD["mp3 44.1 kHz stereo"].encode(speech)
    cover = np.random.default_rng(5).bytes(40_000)
    size = bytes([len(cover) >> shift & 127 for shift in (21, 14, 7, 0)])
    tag = b"ID3\x03\x00\x00" + size + cover
    pcm, warnings = decode(tag + content + tag + content, tmp_path)
    assert len(pcm) == pytest.approx(2 * len(speech), abs=RATE // 5)
    assert not warnings


def test_joined_amr_files(speech: Pcm, tmp_path: Path) -> None:
    content = GOOD["amr"].encode(speech)
    alone, _ = decode(content, tmp_path)
    pcm, warnings = decode(content * 3, tmp_path)
    assert len(pcm) == 3 * len(alone)
    assert np.mean(pcm == np.tile(alone, 3)) > 0.9, "the resampler goes on over the seams"
    assert not warnings


@pytest.mark.parametrize(("scale", "warned"), [(0.99, ["drift"]), (1.01, []), (0.997, [])])
def test_a_recorder_with_a_slow_or_a_fast_clock(
    scale: float, warned: list[str], speech: Pcm, tmp_path: Path
) -> None:
    def change(packet: Any) -> bool:
        packet.pts = packet.dts = round(packet.pts * scale)
        return True

    content = encode(talk(150, speech), "matroska", "flac", options={"cluster_time_limit": "500"})
    pcm, warnings = decode(with_packets(content, "matroska", change), tmp_path)
    assert len(pcm) / RATE == pytest.approx(150 * scale, abs=0.2)
    assert warnings == warned


@pytest.mark.parametrize(("at", "back"), [(0.4, 2.0), (0.8, 9.0), (0.6, 0.9)])
def test_sound_that_is_sent_again_is_taken_once(
    at: float, back: float, long_speech: Pcm, tmp_path: Path
) -> None:
    content = ts(long_speech)
    starts = pes_starts(content)
    until = starts[round(at * len(starts))]
    since = starts[round((at - back / 20) * len(starts))]
    pcm, warnings = decode(content[:until] + content[since:], tmp_path)
    assert np.array_equal(pcm, decode(content, tmp_path)[0])
    assert warnings == ["copy"]


def test_a_file_that_was_joined_to_itself_has_its_sound_twice(speech: Pcm, tmp_path: Path) -> None:
    pcm, warnings = decode(ts(speech) * 2, tmp_path)
    assert len(pcm) == pytest.approx(2 * len(speech), abs=RATE // 10)
    assert not warnings


def test_pauses_that_an_encoder_does_not_send_are_no_gaps(long_speech: Pcm, tmp_path: Path) -> None:
    """From 5 to 10 s and from 15 s on, it sends 20 ms of each 400."""
    content = encode(long_speech, "webm", "libopus", rate=48_000)
    pcm, warnings = decode(
        with_packets(
            content,
            "webm",
            lambda packet: (
                packet.pts * packet.time_base // 5 % 2 == 0
                or packet.pts * packet.time_base % Fraction(2, 5) < Fraction(1, 50)
            ),
        ),
        tmp_path,
    )
    assert len(pcm) == pytest.approx(len(long_speech), abs=RATE // 2)
    expected = decode(content, tmp_path)[0][11 * RATE : 14 * RATE]
    lags = range(-RATE // 10, RATE // 10, 8)
    fits = [np.corrcoef(expected, pcm[11 * RATE + lag : 14 * RATE + lag])[0, 1] for lag in lags]
    assert max(fits) > 0.95
    assert not warnings
