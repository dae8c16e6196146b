"""Cues for the formats of broadcasters: few characters, and short lines. Pure."""

import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from app.common.errors import UnsuitableFormat
from app.transcript.cues.timing import Cue
from app.transcript.formats.common import clock, milliseconds, plain_line
from workers.messages import SAMPLE_RATE

DAY = 24 * 3600  # seconds; time codes go no further

# Soft hyphens, joiners, and marks of direction: nobody sees them.
_INVISIBLE = re.compile("[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")

# Written instead of a character if the format has none for it.
_SIMILAR: Mapping[str, str] = {
    **dict.fromkeys("’‘‚‛`´", "'"),
    **dict.fromkeys("“”„‟«»", '"'),
    **dict.fromkeys("‐‑‒–—―−", "-"),
    **{chr(code): str(unicodedata.digit(chr(code))) for code in range(0x660, 0x66A)},
    "…": "...",
}


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """The characters of a format. `name` as errors name it."""

    name: str
    characters: Container[str]

    def written(self, char: str) -> str | None:
        """What the file has for a character; None if it can have nothing."""
        if char in self.characters:
            return char
        similar = _SIMILAR.get(char)
        return similar if similar is not None and all(part in self.characters for part in similar) else None


def visible(text: str) -> str:
    """The text on one line, composed (NFC), with single spaces, without characters that nobody sees."""
    return " ".join(_INVISIBLE.sub("", unicodedata.normalize("NFC", plain_line(text))).split())


def narrow_cues(
    cues: Iterable[Cue], character_set: CharacterSet, max_chars: int, max_lines: int
) -> Iterator[Cue]:
    """The cues in the characters of a set, in lines of at most `max_chars` characters.

    Longer lines are broken at spaces, and longer words anywhere. A cue with more than `max_lines` lines
    becomes several, with a part of its time each. Raises `UnsuitableFormat` for a character that the set
    lacks, and for a cue that ends after a day.
    """
    for cue in cues:
        if cue.end > DAY * SAMPLE_RATE:
            raise UnsuitableFormat(
                f"{character_set.name} holds times up to 24 hours, and the transcript is longer. Ask for "
                "srt, vtt or ttml instead.",
                param="format",
            )
        lines = [
            part
            for line in cue.lines
            if (text := _written(line, cue, character_set))
            for part in _wrapped(text, max_chars)
        ]
        yield from _parts(cue, lines, max_lines)


def _written(line: str, cue: Cue, character_set: CharacterSet) -> str:
    written = []
    for char in visible(line):
        similar = character_set.written(char)
        if similar is None:
            at = clock(milliseconds(cue.start)).partition(".")[0]
            raise UnsuitableFormat(
                f"{character_set.name} has no character {char!r} (U+{ord(char):04X}), which the transcript "
                f"has at {at}. Ask for srt, vtt or ttml instead: they hold every character.",
                param="format",
            )
        written.append(similar)
    return "".join(written)


def _wrapped(line: str, max_chars: int) -> Iterator[str]:
    begin = 0
    while len(line) - begin > max_chars:
        end = line.rfind(" ", begin, begin + max_chars + 1)
        if end <= begin:
            end = begin + max_chars
            while end > begin + 1 and unicodedata.combining(line[end]):
                end -= 1
        yield line[begin:end]
        begin = end + (line[end] == " ")  # there are single spaces only
    yield line[begin:]


def _parts(cue: Cue, lines: Sequence[str], max_lines: int) -> Iterator[Cue]:
    """The cue with these lines, or several cues that share its time if they are too many."""
    if len(lines) <= max_lines:
        if lines:
            yield replace(cue, lines=tuple(lines))
        return
    total = sum(map(len, lines))
    done, start = 0, cue.start
    for first in range(0, len(lines), max_lines):
        part = tuple(lines[first : first + max_lines])
        done += sum(map(len, part))
        end = cue.start + (cue.end - cue.start) * done // total
        yield replace(cue, start=start, end=end, lines=part)
        start = end
