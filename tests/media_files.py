"""Makes audio and video files for tests: good ones in many formats, and broken ones."""

import gzip
import io
import json
import random
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt

from tests.cases import read_cases

RATE = 16_000  # Hz, of every array here
Pcm = npt.NDArray[np.int16]

VIDEO_FPS = 25
CHANNELS = {"mono": 1, "stereo": 2, "5.1": 6, "7.1": 8}


def read_pcm(path: Path) -> Pcm:
    """The samples of a 16 kHz mono recording."""
    with av.open(str(path)) as container:
        return np.concatenate([frame.to_ndarray()[0] for frame in container.decode(audio=0)]).astype(np.int16)


def talk(seconds: float, speech: Pcm) -> Pcm:
    """`speech`, repeated to a length of `seconds`."""
    return np.resize(speech, round(seconds * RATE))


def encode(
    pcm: Pcm,
    container: str,
    codec: str,
    *,
    rate: int = RATE,
    layout: str = "mono",
    video: str | None = None,
    audio_starts_at: float = 0.0,
    clock_jumps: dict[int, float] | None = None,
    bit_rate: int | None = None,
    options: dict[str, str] | None = None,
) -> bytes:
    """A file whose sound has `pcm` in every channel.

    `video` names a video codec, for black pictures from second 0 to the end of the sound. The sound starts at
    `audio_starts_at` seconds. `clock_jumps` maps a second of `pcm` to the seconds that all later timestamps
    are moved by. `options` are the muxer's.
    """
    file = io.BytesIO()
    with av.open(file, "w", format=container, options=options or {}) as output:
        pictures = _add_pictures(output, video) if video else None
        sound: Any = output.add_stream(codec, rate=rate, layout=layout, options={"strict": "experimental"})
        if bit_rate is not None:
            sound.bit_rate = bit_rate
        encoder = _SoundEncoder(sound, rate, layout, audio_starts_at)
        shown = 0
        for start in range(0, len(pcm), RATE):
            second = pcm[start : start + RATE]
            encoder.skip((clock_jumps or {}).get(start // RATE, 0.0))
            if pictures is not None:
                until = round((audio_starts_at + (start + len(second)) / RATE) * VIDEO_FPS)
                _mux_pictures(output, pictures, range(shown, until))
                shown = until
            output.mux(encoder.encode(second))
        if pictures is not None:
            output.mux(pictures.encode(None))
        output.mux(encoder.finish())
    return file.getvalue()


def silent_video(container: str = "mp4", codec: str = "mpeg4", seconds: float = 2.0) -> bytes:
    """A video without a sound track."""
    file = io.BytesIO()
    with av.open(file, "w", format=container) as output:
        pictures = _add_pictures(output, codec)
        _mux_pictures(output, pictures, range(round(seconds * VIDEO_FPS)))
        output.mux(pictures.encode(None))
    return file.getvalue()


def flac_of_silence(hours: float, *, declared: bool = True) -> bytes:
    """A mono FLAC file: with padding, so that it could hold sound of the length that its header gives, as 1
    kbit/s. Unless `declared`, the header leaves the length open, and the file has a few kilobytes.
    """
    rate = 1000  # Hz
    minute = np.zeros((1, 60 * rate), np.int16)
    file = io.BytesIO()
    with av.open(file, "w", format="flac") as output:
        options = {"frame_size": "65535", "compression_level": "0"}
        stream: Any = output.add_stream("flac", rate=rate, layout="mono", options=options)
        for number in range(round(hours * 60)):
            frame = av.AudioFrame.from_ndarray(minute, format="s16", layout="mono")
            frame.sample_rate, frame.pts = rate, number * minute.size
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    content = bytearray(file.getvalue())
    if not declared:
        # The last 36 bits before the checksum in STREAMINFO, which follows the first 8 bytes of the file.
        content[21] &= 0xF0
        content[22:26] = bytes(4)
        return bytes(content)
    size = round(hours * 3600 * 1000 / 8)
    first_block = 4 + 4 + 34  # bytes up to the end of STREAMINFO
    return (
        bytes(content[:first_block]) + b"\x01" + size.to_bytes(3) + bytes(size) + bytes(content[first_block:])
    )


def costly_silence(seconds: int) -> bytes:
    """A FLAC file of 1.5 KB for each second, which takes ten times as long to decode as speech."""
    rate, layout = 655_350, "7.1"
    frame = av.AudioFrame.from_ndarray(np.zeros((1, rate // 10 * 8), np.int16), format="s16", layout=layout)
    file = io.BytesIO()
    with av.open(file, "w", format="flac") as output:
        stream: Any = output.add_stream("flac", rate=rate, layout=layout, options={"compression_level": "0"})
        for _ in range(seconds * 10):
            frame.sample_rate, frame.pts = rate, None
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return file.getvalue()


def _add_pictures(output: Any, codec: str) -> Any:
    stream: Any = output.add_stream(codec, rate=VIDEO_FPS)
    stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
    return stream


def _mux_pictures(output: Any, stream: Any, numbers: range) -> None:
    for number in numbers:
        picture = av.VideoFrame(64, 64, "yuv420p")
        for plane in picture.planes:
            plane.update(bytes(plane.buffer_size))
        picture.pts, picture.time_base = number, Fraction(1, VIDEO_FPS)
        output.mux(stream.encode(picture))


class _SoundEncoder:
    """Resamples 16 kHz mono, copies it to every channel, and encodes the result."""

    def __init__(self, stream: Any, rate: int, layout: str, starts_at: float) -> None:
        self._stream, self._rate, self._layout = stream, rate, layout
        self._position = round(starts_at * rate)
        self._to_rate = av.AudioResampler(format="flt", layout="mono", rate=rate)
        self._to_codec = av.AudioResampler(format=stream.format, layout=layout, rate=rate)

    def skip(self, seconds: float) -> None:
        """Add seconds to the following timestamps."""
        self._position += round(seconds * self._rate)

    def encode(self, pcm: Pcm) -> list[Any]:
        return self._encode(_frame(pcm / np.float32(32768), RATE))

    def finish(self) -> list[Any]:
        return [*self._encode(None), *self._stream.encode(None)]

    def _encode(self, frame: Any) -> list[Any]:
        packets: list[Any] = []
        for mono in self._to_rate.resample(frame):
            wide = _frame(np.repeat(mono.to_ndarray(), CHANNELS[self._layout]), self._rate, self._layout)
            for ready in self._to_codec.resample(wide):
                ready.pts, ready.time_base = self._position, Fraction(1, self._rate)
                self._position += ready.samples
                packets += self._stream.encode(ready)
        return packets


def _frame(interleaved: npt.NDArray[Any], rate: int, layout: str = "mono") -> Any:
    array = interleaved.reshape(1, -1).astype(np.float32)
    frame = av.AudioFrame.from_ndarray(array, format="flt", layout=layout)
    frame.sample_rate = rate
    return frame


@dataclass(frozen=True, slots=True)
class Format:
    """How to encode one good file: the arguments of `encode`."""

    options: dict[str, Any]

    def encode(self, pcm: Pcm) -> bytes:
        return _encoded_once(json.dumps(self.options), pcm.astype("<i2").tobytes())


@lru_cache(100)
def _encoded_once(options: str, pcm: bytes) -> bytes:
    return encode(np.frombuffer(pcm, "<i2"), **json.loads(options))


GOOD = {name: Format(options) for name, options in read_cases("recordings").items()}


def wav_header(
    data_bytes: int,
    *,
    channels: int = 1,
    rate: int = RATE,
    bits: int = 16,
    coding: int = 1,
    riff: bytes = b"RIFF",
) -> bytes:
    """The 44 bytes before the samples of a WAV file that declares `data_bytes` of them."""
    frame = channels * bits // 8 & 0xFFFF
    form = struct.pack("<IHHIIHH", 16, coding, channels, rate, rate * frame & 0xFFFFFFFF, frame, bits)
    size = min(36 + data_bytes, 0xFFFFFFFF)
    return riff + struct.pack("<I", size) + b"WAVEfmt " + form + b"data" + struct.pack("<I", data_bytes)


def png() -> bytes:
    """A picture of one grey pixel."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\x00\x80")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def _zip() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("talk.txt", "a talk " * 100)
    return file.getvalue()


def _sqlite() -> bytes:
    with sqlite3.connect(":memory:") as database:
        database.execute("create table talk (words text)")
        return database.serialize()


def _tone(container: str, codec: str, **options: Any) -> bytes:
    seconds = np.arange(2 * RATE) / RATE
    return encode((8000 * np.sin(2 * np.pi * 440 * seconds)).astype(np.int16), container, codec, **options)


def _without_moov() -> bytes:
    content = _tone("mp4", "aac", rate=48_000)
    return content[: content.index(b"moov") - 4]


def _noise(size: int, seed: int = 7) -> bytes:
    return random.Random(seed).randbytes(size)


# Files that cannot be transcribed: how to make each, and the code of its error.
BROKEN: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "empty_file"),
    "one byte": (lambda: b"\x00", "not_audio"),
    "null bytes": (lambda: bytes(100_000), "not_audio"),
    "random bytes": (lambda: _noise(300_000), "not_audio"),
    "text": (lambda: b"Dear Sir or Madam,\n\nplease transcribe this.\n" * 50, "not_audio"),
    "utf-16 text": (lambda: ("Guten Tag, schöne Grüße.\n" * 50).encode("utf-16"), "not_audio"),
    "html": (lambda: b"<!DOCTYPE html><html><body>404 Not Found</body></html>", "not_audio"),
    "json": (lambda: b'{"error": "not found", "url": "http://localhost/a.mp3"}', "not_audio"),
    "svg": (lambda: b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>', "not_audio"),
    "srt": (lambda: b"1\n00:00:00,000 --> 00:00:01,000\nHello\n\n" * 20, "not_audio"),
    "vtt": (lambda: b"WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n", "not_audio"),
    "m3u8": (lambda: b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\na.ts\n#EXT-X-ENDLIST\n", "not_audio"),
    "concat script": (lambda: b"ffconcat version 1.0\nfile a.wav\n", "not_audio"),
    "sdp": (lambda: b"v=0\no=- 0 0 IN IP4 127.0.0.1\nm=audio 5004 RTP/AVP 0\n", "not_audio"),
    "shell script": (lambda: b"#!/bin/sh\necho hello\n", "not_audio"),
    "pdf": (lambda: b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n" + _noise(20_000), "not_audio"),
    "png": (png, "not_audio"),
    "jpeg": (lambda: b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01" + _noise(20_000), "not_audio"),
    "gif": (lambda: b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff;", "not_audio"),
    "zip": (_zip, "not_audio"),
    "gzip": (lambda: gzip.compress(_noise(20_000)), "not_audio"),
    "sqlite": (_sqlite, "not_audio"),
    "elf": (lambda: b"\x7fELF\x02\x01\x01" + bytes(9) + _noise(20_000), "not_audio"),
    "midi": (lambda: b"MThd\x00\x00\x00\x06\x00\x01\x00\x01\x01\xe0MTrk\x00\x00\x00\x00", "not_audio"),
    "two bytes of an MPC 2000": (lambda: b"\x01\x04" + _noise(300_000), "not_audio"),
    "wav without samples": (lambda: wav_header(0), "audio_too_short"),
    "wav cut in its header": (lambda: wav_header(32_000)[:30], "broken_file"),
    "wav with zero channels": (lambda: wav_header(32_000, channels=0) + _noise(32_000), "broken_file"),
    "wav with rate zero": (lambda: wav_header(32_000, rate=0) + _noise(32_000), "broken_file"),
    "wav with rate 4 GHz": (lambda: wav_header(32_000, rate=0xFFFFFFFF) + _noise(32_000), "broken_file"),
    "wav with 65535 channels": (lambda: wav_header(32_000, channels=65_535) + _noise(32_000), "broken_file"),
    "wav with unknown coding": (
        lambda: wav_header(32_000, coding=0x7777) + _noise(32_000),
        "unsupported_codec",
    ),
    "a blink of sound": (lambda: wav_header(1600) + bytes(1600), "audio_too_short"),
    "flac cut in its header": (lambda: _tone("flac", "flac")[:30], "broken_file"),
    "ogg page of noise": (lambda: b"OggS" + _noise(20_000), "broken_file"),
    "mp4 without moov": (_without_moov, "broken_file"),
    "mp4 ftyp only": (lambda: _tone("mp4", "aac", rate=48_000)[:32], "broken_file"),
    "matroska header only": (lambda: _tone("matroska", "flac")[:40], "broken_file"),
    "mp3 tag only": (lambda: b"ID3\x04\x00\x00\x00\x00\x10\x00" + bytes(2048), "broken_file"),
    "mp3 of one frame header": (lambda: b"\xff\xfb\x90\x00", "broken_file"),
    "mp4 video without sound": (silent_video, "no_audio_track"),
    "mkv video without sound": (lambda: silent_video("matroska"), "no_audio_track"),
    "encrypted mp4": (lambda: _tone("mp4", "aac", rate=48_000, options=_ENCRYPTION), "encrypted"),
}

_ENCRYPTION = {
    "encryption_scheme": "cenc-aes-ctr",
    "encryption_key": "76a6c65c5ea762046bd749a2e632ccbb",
    "encryption_kid": "a7e61c373e219033c21091fa607bf3b8",
}


def mov_with_external_sound(path: Path) -> bytes:
    """A QuickTime movie whose Macintosh alias record refers to samples in the file at `path`."""
    movie = _tone("mov", "pcm_s16le")
    alias = bytes(150) + struct.pack(">hH", 2, len(str(path))) + str(path).encode()
    alias += bytes(len(str(path)) % 2) + struct.pack(">h", -1)
    old = struct.pack(">I4sI", 12, b"url ", 1)
    assert movie.count(old) == 1
    new = struct.pack(">I4sI", 12 + len(alias), b"alis", 0) + alias
    for box in (b"dref", b"dinf", b"minf", b"mdia", b"trak", b"moov"):  # from the inside out
        at = movie.rindex(box, 0, movie.index(old)) - 4
        size = int.from_bytes(movie[at : at + 4]) + len(new) - len(old)
        movie = movie[:at] + size.to_bytes(4) + movie[at + 4 :]
    return movie.replace(old, new)


def film(tracks: dict[str, Pcm], container: str = "matroska", default: int | range = 0) -> bytes:
    """A file with several sound tracks: by language, their samples. `default`: the one that it prefers, or
    several.
    """
    from av.stream import Disposition

    preferred = range(default, default + 1) if isinstance(default, int) else default
    file = io.BytesIO()
    with av.open(file, "w", format=container) as output:
        streams: list[Any] = []
        for number, language in enumerate(tracks):
            codec = "flac" if container == "matroska" else "aac"
            stream: Any = output.add_stream(codec, rate=RATE, layout="mono")
            stream.metadata["language"] = language
            stream.disposition = Disposition.default if number in preferred else Disposition(0)
            streams.append(stream)
        for stream, pcm in zip(streams, tracks.values(), strict=True):
            encoder = _SoundEncoder(stream, RATE, "mono", 0.0)
            for start in range(0, len(pcm), RATE):
                output.mux(encoder.encode(pcm[start : start + RATE]))
            output.mux(encoder.finish())
    return file.getvalue()
