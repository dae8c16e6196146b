"""Packets that are not sound to decode: those that a file has twice, pauses, tags, and what is damaged."""

import re
from collections import deque
from collections.abc import Iterator
from math import inf
from typing import Any
from zlib import crc32

from workers.media.findings import Findings
from workers.media.sources import tag_bytes

# Demuxers of raw streams. FFmpeg makes up the times of their packets, and guesses how long each is.
UNTIMED = frozenset(
    {"aac", "ac3", "amr", "amrnb", "amrwb", "dts", "dtshd", "eac3", "loas", "mlp", "mp3", "truehd"}
)
# These, and those of files that are joined with times that start anew, or whose samples are counted.
_WITHOUT_COPIES = UNTIMED | {"aiff", "au", "caf", "flac", "ogg", "voc", "w64", "wav"}
_COPIED_S = 10.5  # a packet may be a copy of one so long before it
_PLACES = 100  # in a second, that times are rounded to
_BEGINNING_S = 1.0  # of a file. Times that go back there are those of another file that was joined to it
_END_S = 1.0  # sound that is sent again ends so close to where its time went back
_TAG = re.compile(rb"ID3[\2-\4]\0[\0-\xf0]([\0-\x7f]{4})", re.DOTALL)  # with its length
_AFTER_TAG = 2000  # bytes in which the first packet after a tag is still mixed with it
_LONGEST_S = 10.0  # packet; what a damaged one says of itself may be wrong


def without_copies(packets: Iterator[Any], container: Any, stream: Any, findings: Findings) -> Iterator[Any]:
    """Drop packets that a file has twice: a recorder went back, or pieces of a stream were fetched again.

    They have the times and the bytes of others, up to where the time went back. `findings` get the place.
    """
    if container.format.name in _WITHOUT_COPIES or stream.codec_context.name.startswith("pcm_"):
        yield from packets
        return
    unit = float(stream.time_base)
    beginning_s = (stream.start_time or 0) * unit + _BEGINNING_S
    past: deque[tuple[int, int]] = deque()  # of the last packets: rounded time, checksum
    known: set[tuple[int, int]] = set()  # of those before the time went back
    last_s, since_s, until_s = 0.0, 0.0, -inf  # since and until when packets may be copies
    waiting: list[Any] = []  # which are, if the others up to `until_s` are as well
    for packet in packets:
        time_s = last_s if packet.pts is None else packet.pts * unit
        place, checksum = round(time_s * _PLACES), crc32(packet)
        if time_s < last_s:
            yield from waiting
            waiting, known = [], set(past)
            until_s = -inf if time_s < beginning_s else max(last_s, until_s)
        has_moved, last_s = time_s > last_s, time_s
        # FFmpeg rounds the times of packets, depending on where it began to count.
        if time_s <= until_s and any((place + near, checksum) in known for near in (0, -1, 1)):
            since_s = since_s if waiting else time_s
            waiting.append(packet)
            if until_s - time_s <= _END_S:
                waiting = []
                end_s = findings.position_s
                findings.note("copy", max(0.0, end_s - until_s + since_s), end_s)
            continue
        yield from waiting
        waiting = []
        if has_moved:
            past.append((place, checksum))
            while abs(past[0][0] - place) > _COPIED_S * _PLACES:
                past.popleft()
        yield packet
    yield from waiting


def has_one_rate(container: Any, stream: Any, until_s: float) -> bool:
    """Whether all packets of an ADTS file before a time have one rate, so that FFmpeg counts them right."""
    rates: set[int] = set()
    for packet in container.demux(stream):
        if packet.pts is None or packet.pts * stream.time_base >= until_s:
            break
        rates.update(byte & 0x3C for byte in memoryview(packet)[2:3])
    return len(rates) <= 1


class Undecodable:
    """What becomes of packets that the decoder refuses."""

    def __init__(self, container: Any, stream: Any, findings: Findings) -> None:
        """`findings` get what is damaged."""
        self._stream, self._findings = stream, findings
        self._is_untimed = container.format.name in UNTIMED
        self._tag_end = 0  # place in the file up to which a tag is, as joined MP3 files have them

    def replace(self, packet: Any) -> list[Any]:
        """A silent frame as long as the packet, if its length is known and its format has no times."""
        place = packet.pos or 0
        if self._is_untimed and (tag := _TAG.search(bytes(packet))):
            self._tag_end = place + tag.end() + tag_bytes(tag[1]) + _AFTER_TAG
        seconds = min((packet.duration or 0) * float(self._stream.time_base), _LONGEST_S)
        if packet.size and place >= self._tag_end:  # players count the time of a tag as well
            self._findings.damage(seconds)
        if self._is_untimed:
            return _silence(self._stream.codec_context, seconds)
        self._findings.position_s += seconds
        return []


def _silence(codec: Any, seconds: float) -> list[Any]:
    """A frame of silence in the format of a decoder, if that is known."""
    from av import AudioFrame

    samples = round(seconds * codec.sample_rate)
    if codec.format is None or not codec.channels or not samples:
        return []
    frame = AudioFrame(codec.format.name, codec.layout.name, samples)
    frame.sample_rate = codec.sample_rate
    for plane in frame.planes:
        plane.update(bytes(plane.buffer_size))
    return [frame]
