"""Packets that are not sound to decode: those that a file has twice, pauses, tags, and what is damaged."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any
from zlib import crc32

from workers.media.clock import MAX_SILENCE_S
from workers.media.findings import Findings

# Demuxers of raw streams. FFmpeg makes up the times of their packets, and guesses how long each is.
UNTIMED = frozenset(
    {"aac", "ac3", "amr", "amrnb", "amrwb", "dts", "dtshd", "eac3", "loas", "mlp", "mp3", "truehd"}
)
# These, and those of files that are joined with times that start anew, or whose samples are counted.
_WITHOUT_COPIES = UNTIMED | {"aiff", "au", "caf", "flac", "ogg", "voc", "w64", "wav"}
_COPIED_S = 10.5  # a packet may be a copy of one so long before it
_MAX_COPIED = 5000  # the same, in packets
_PLACES = 100  # in a second, of copies
_BEGINNING_S = 1.0  # of a file. Times that go back there are those of another file that was joined to it
_END_S = 1.0  # sound that is sent again ends so close to where its time went back
_PAUSES = {"amrnb": {8, 9, 10, 11, 15}, "amrwb": {9, 15}}  # modes of AMR for when nobody speaks
_FILL_S = 1.0  # silence at a time


class Copies:
    """Finds packets that a file has twice: a recorder went back, or pieces of a stream were fetched again.

    They have the times and the bytes of earlier ones, up to where the time went back.
    """

    def __init__(self, container: Any, stream: Any, findings: Findings) -> None:
        """`findings` are to tell where there are copies."""
        self._findings = findings
        self._is_possible = container.format.name not in _WITHOUT_COPIES
        self._unit = float(stream.time_base)
        self._beginning_s = (stream.start_time or 0) * self._unit + _BEGINNING_S
        # Times and checksums, oldest first. FFmpeg rounds times from the one that a group of packets has.
        self._known: OrderedDict[tuple[int, int], None] = OrderedDict()
        self._last_s = 0.0  # the time of the last packet
        self._until_s: float | None = None  # the time that went back, until it is reached again
        self._waiting: list[tuple[float, Any]] = []  # packets that may be copies, with their times
        self._are_copies = False  # the last packets were copies, and so is the next one if it is known

    def drop(self, packet: Any) -> list[Any]:
        """The packets that are known to be no copies once this one is there."""
        if not self._is_possible:
            return [packet]
        if packet.pts is None:
            return self._keep(packet)
        time_s, checksum = packet.pts * self._unit, crc32(packet)
        if time_s < self._last_s:
            is_joined = time_s < self._beginning_s
            self._until_s = None if is_joined else max(self._last_s, self._until_s or self._last_s)
        elif self._until_s is not None and time_s > self._until_s:
            self._until_s = None
        self._last_s = time_s
        place = round(time_s * _PLACES)
        if self._until_s is None or not any((near, checksum) in self._known for near in _near(place)):
            self._remember(place, checksum)
            return self._keep(packet)
        self._waiting.append((time_s, packet))
        if not self._are_copies and self._until_s - time_s <= _END_S:
            self._are_copies = True
            end_s = self._findings.position_s
            self._findings.note("copy", max(0.0, end_s - self._until_s + self._waiting[0][0]), end_s)
        if self._are_copies:
            self._waiting = []
        return []

    def _keep(self, packet: Any) -> list[Any]:
        kept = [*(waiting for _, waiting in self._waiting), packet]
        self._waiting, self._are_copies = [], False
        return kept

    def _remember(self, place: int, checksum: int) -> None:
        known = self._known
        known[place, checksum] = None
        while len(known) > _MAX_COPIED or abs(next(iter(known))[0] - place) > _COPIED_S * _PLACES:
            known.popitem(last=False)


def _near(place: int) -> tuple[int, int, int]:
    return place, place - 1, place + 1


class Undecodable:
    """What becomes of packets that the decoder refuses."""

    def __init__(self, container: Any, stream: Any, findings: Findings) -> None:
        """`findings` are to tell what is damaged."""
        self._findings = findings
        self._codec = stream.codec_context
        self._unit = float(stream.time_base)
        self._is_untimed = container.format.name in UNTIMED
        self._filled_s = 0.0
        self._tag_end = 0  # of the last tag, as a place in the file

    def is_tag(self, packet: Any) -> bool:
        """Whether a packet is in a tag that was found, such as that of an MP3 file that was joined."""
        return self._tag_end > 0 and packet.pos is not None and packet.pos < self._tag_end

    def replace(self, packet: Any) -> Iterator[Any]:
        """Silent frames as long as the packet, where its length is known but no times tell it."""
        content = bytes(packet)
        if self._is_untimed and (tag := content.find(b"ID3")) >= 0 and len(content) >= tag + 10:
            size = sum(
                (byte & 127) << shift
                for byte, shift in zip(content[tag + 6 : tag + 10], (21, 14, 7, 0), strict=True)
            )
            self._tag_end = (packet.pos or 0) + tag + 10 + size
            return
        seconds = (packet.duration or 0) * self._unit
        is_pause = bool(content) and content[0] >> 3 & 15 in _PAUSES.get(self._codec.name, ())
        if not is_pause:
            self._findings.damage(seconds)
        if not (self._is_untimed or is_pause):
            self._findings.position_s += seconds
            return
        seconds = min(seconds, MAX_SILENCE_S - self._filled_s)
        self._filled_s += seconds
        yield from _silence(self._codec, seconds)


def _silence(codec: Any, seconds: float) -> Iterator[Any]:
    """Frames of silence in the format of a decoder."""
    from av import AudioFrame

    samples = round(seconds * codec.sample_rate)
    while samples > 0:
        frame = AudioFrame(
            codec.format.name, codec.layout.name, min(samples, round(_FILL_S * codec.sample_rate))
        )
        frame.sample_rate = codec.sample_rate
        for plane in frame.planes:
            plane.update(bytes(plane.buffer_size))
        samples -= frame.samples
        yield frame
