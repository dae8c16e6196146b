"""Packets that are not sound to decode: those that a file has twice, pauses, tags, and what is damaged."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import takewhile
from math import inf
from typing import Any
from zlib import crc32

from workers.media.clock import MAX_SILENCE_S
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
    beginning = (stream.start_time or 0) + _BEGINNING_S / unit
    last = -inf
    limit = _COPIED_S / unit
    past: deque[tuple[int, Any]] = deque()  # the last packets, with their times
    rewind: _Rewind | None = None
    for packet in packets:
        time = packet.pts
        if time is not None:
            if time < last:
                until = last if rewind is None else max(last, rewind.until)
                if rewind is not None:
                    yield from rewind.release()
                rewind = None if time < beginning else _Rewind(past, until, unit, findings)
            moved, last = time > last, time
            if rewind is not None and rewind.holds(time, packet):
                continue
            if moved:
                past.append((time, packet))
                while abs(past[0][0] - time) > limit:
                    past.popleft()
        if rewind is not None:
            yield from rewind.release()
            rewind = rewind if time is None or time <= rewind.until else None
        yield packet
    if rewind is not None:
        yield from rewind.release()


class _Rewind:
    """What follows after a time that went back, until that time is reached again."""

    def __init__(
        self, past: Iterable[tuple[int, Any]], until: float, unit: float, findings: Findings
    ) -> None:
        self.until = until
        self._unit = unit
        self._findings = findings
        self._past = {(self._place(time), crc32(packet)) for time, packet in past}
        self._waiting: list[Any] = []  # packets that may be copies
        self._are_copies = False  # the last packets were copies, and so is the next one if it is known

    def holds(self, time: int, packet: Any) -> bool:
        """Whether a packet is a copy, or may be one and is kept until that is known."""
        place, checksum = self._place(time), crc32(packet)
        if time > self.until or not any((place + near, checksum) in self._past for near in (0, -1, 1)):
            return False
        self._waiting.append(packet)
        if not self._are_copies and (self.until - time) * self._unit <= _END_S:
            self._are_copies = True
            end_s = self._findings.position_s
            sent_again_s = (self.until - self._waiting[0].pts) * self._unit
            self._findings.note("copy", max(0.0, end_s - sent_again_s), end_s)
        if self._are_copies:
            self._waiting = []
        return True

    def release(self) -> Iterator[Any]:
        """The packets that turned out to be none."""
        released, self._waiting, self._are_copies = self._waiting, [], False
        yield from released

    def _place(self, time: int) -> int:
        # FFmpeg rounds the times of packets, depending on where it began to count.
        return round(time * self._unit * _PLACES)


def has_one_rate(container: Any, stream: Any, until_s: float) -> bool:
    """Whether all packets of an ADTS file before a time have one rate, so that FFmpeg counts them right."""
    packets = container.demux(stream)
    before = takewhile(
        lambda packet: packet.pts is not None and packet.pts * stream.time_base < until_s, packets
    )
    return len({memoryview(packet)[2] & 0x3C for packet in before if packet.size > 2}) <= 1


class Undecodable:
    """What becomes of packets that the decoder refuses."""

    def __init__(self, container: Any, stream: Any, findings: Findings) -> None:
        """`findings` get what is damaged."""
        self._findings = findings
        self._codec = stream.codec_context
        self._unit = float(stream.time_base)
        self._is_untimed = container.format.name in UNTIMED
        self._filled_s = 0.0
        self._tag_end = -_AFTER_TAG  # of the last tag, as a place in the file

    def is_tag(self, packet: Any) -> bool:
        """Whether a packet is in a tag that was found, such as that of an MP3 file that was joined."""
        return self._tag_end > 0 and packet.pos is not None and packet.pos < self._tag_end

    def replace(self, packet: Any) -> Iterator[Any]:
        """Silent frames as long as the packet, where its length is known and its format has no times."""
        content = bytes(packet)
        place = packet.pos or 0
        if self._is_untimed and (tag := _TAG.search(content)):
            self._tag_end = place + tag.end() + tag_bytes(tag[1])
        seconds = min((packet.duration or 0) * self._unit, _LONGEST_S)
        if place >= self._tag_end + _AFTER_TAG:  # players count the time of a tag as well
            self._findings.damage(seconds)
        if not self._is_untimed:
            self._findings.position_s += seconds
            return
        seconds = min(seconds, MAX_SILENCE_S - self._filled_s)
        self._filled_s += seconds
        yield from _silence(self._codec, seconds)


def _silence(codec: Any, seconds: float) -> Iterator[Any]:
    """Frames of silence in the format of a decoder, of up to a second each."""
    from av import AudioFrame

    is_known = codec.format is not None and codec.channels
    samples = round(seconds * codec.sample_rate) if is_known else 0
    while samples > 0:
        frame = AudioFrame(codec.format.name, codec.layout.name, min(samples, codec.sample_rate))
        frame.sample_rate = codec.sample_rate
        for plane in frame.planes:
            plane.update(bytes(plane.buffer_size))
        samples -= frame.samples
        yield frame
