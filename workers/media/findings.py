"""What was found while a recording was decoded, and what of it its sender should know."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from workers.media.mixer import SPEECH, PcmFormat
from workers.messages import MAX_TRACKS, MAX_WARNINGS, RecordingWarning, SoundTrack, clock

_TOGETHER_S = 1.0  # parts of one kind that are as close as that are one

# By code: what a part of a recording is, in words for the one who sent it. `at` and `until` are times of it.
_MESSAGES = {
    "undecodable": "{seconds} could not be decoded at {at}.",
    "gap": "Nothing was recorded from {at} to {until}.",
    "copy": "The file has the sound from {at} to {until} twice; it was taken once.",
    "drift": "From {at} to {until}, the sound is longer than its times; bits of it were cut out.",
    "cut_off": "The file ends at {at} of {until}.",
}


@dataclass(slots=True)
class Findings:
    """What is known of a recording while it is decoded, and its problems."""

    position_s: float = 0.0  # how far it is decoded
    damaged: int = 0  # packets that were skipped
    declared_s: float = 0.0  # length as the file gives it; 0 if it does not
    declared_channels: int = 1  # of the chunks, as the file gives them; 0 if it does not
    pcm_format: PcmFormat = SPEECH  # of the chunks, known with the first one that is not empty
    tracks: tuple[SoundTrack, ...] = ()  # of the file; known with the first chunk
    skipped_s: int = 0  # before the chunks; known with the first one
    # By code: start, end and how long it is without what is between parts that were joined (s).
    _parts: dict[str, list[tuple[float, float, float]]] = field(default_factory=dict)

    def damage(self, seconds: float = 0.0) -> None:
        """Note a packet of this length that cannot be decoded."""
        self.damaged += 1
        self.note("undecodable", self.position_s, self.position_s + seconds)

    def note(self, code: str, start_s: float, end_s: float) -> None:
        """Note a part of the recording with a problem. It joins the last one of its kind if that is near."""
        parts, seconds = self._parts.setdefault(code, []), end_s - start_s
        if parts and start_s - parts[-1][1] <= _TOGETHER_S:
            first_s, last_s, before_s = parts.pop()
            start_s, end_s, seconds = first_s, max(last_s, end_s), before_s + seconds
        parts.append((start_s, end_s, seconds))

    def start_anew(self) -> None:
        """Forget the problems that were found while seeking."""
        self.damaged = 0
        self._parts.clear()

    def warnings(self) -> Iterator[RecordingWarning]:
        """The warnings for the sender, in the order of their times: the first `MAX_WARNINGS`, and counts."""
        parts = [(*part, code) for code, parts_of in self._parts.items() for part in parts_of]
        parts.sort(key=lambda part: part[0])
        for start_s, end_s, seconds, code in parts[:MAX_WARNINGS]:
            start_s, end_s = round(start_s, 2), round(end_s, 2)  # a sum may be just below a second
            words = {"at": clock(start_s), "until": clock(end_s), "seconds": _seconds(seconds)}
            message = _MESSAGES[code].format(**words)
            yield RecordingWarning(code, message, start_s, end_s)
        if (more := len(parts) - MAX_WARNINGS) > 0:
            yield RecordingWarning("more", f"There are {more} more such places.", None, None)
        if len(self.tracks) > MAX_TRACKS:
            message = f"The file has {len(self.tracks)} sound tracks; the first {MAX_TRACKS} are listed."
            yield RecordingWarning("tracks", message, None, None)


def _seconds(seconds: float) -> str:
    if seconds < 0.05:
        return "Something"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
