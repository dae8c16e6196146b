"""LRC, the format of lyrics: one line for each cue, without an end."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from app.transcript.cues import Cue
from app.transcript.formats.clock import SAMPLES_PER_CS, timed_cues
from app.transcript.scripts import may_part
from app.transcript.timeline import Transcript

# Square brackets hold tags, and there is no escape; some readers look for tags in the midst of a line.
_LIKENESSES = str.maketrans("[]", "()")
_WORD_TIME = re.compile(r"<(\d+:\d+(?:[.:]\d+)?)>")  # a tag of the format's extension A2


def write_lrc(_: Transcript, cues: Iterable[Cue]) -> Iterator[str]:
    """LRC; nothing at all for no cues. Minutes go on beyond 59, as the format has no hours."""
    for start_cs, _end_cs, lines in timed_cues(cues, SAMPLES_PER_CS):
        yield f"[{_clock(start_cs)}]{_text(lines)}\n"


def _text(lines: Sequence[str]) -> str:
    return _WORD_TIME.sub(r"‹\1›", _in_one_line(lines).translate(_LIKENESSES))


def _in_one_line(lines: Sequence[str]) -> str:
    """The lines joined with a space, but for those that were parted within text that has none."""
    joined = lines[0]
    for before, after in pairwise(lines):
        joined += after if may_part(before[-1], after[0]) else f" {after}"
    return joined


def _clock(centiseconds: int) -> str:
    seconds, centiseconds = divmod(centiseconds, 100)
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes:02}:{seconds:02}.{centiseconds:02}"
