"""Whether a file of subtitles keeps the limits of a profile that docs/subtitles.md lists.

    python -m bench.subtitle_rules FILE --language de [--profile netflix] [--fps 25]

Reads what pysubs2 reads (SRT, WebVTT, ASS), and measures by itself: only the limits are those of the service.
Prints a line for each rule that a subtitle breaks, and ends with 1 if there are any.
"""

import argparse
import sys
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pysubs2

from app.common.options import Options, ProfileName
from app.transcript.cues.lines import CueStyle
from app.transcript.cues.profiles import cue_style
from workers.messages import SAMPLE_RATE

_ROUNDING_MS = 1  # of the times of a file
_FLICKER_MS = 500  # a shorter gap closes to the least one


def columns(line: str) -> int:
    """The width of a line: nothing for marks above and below letters, and for characters nobody sees."""
    seen = (char for char in line if unicodedata.category(char) not in ("Mn", "Me", "Cf", "Cc"))
    return sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in seen)


def broken_rules(file: pysubs2.SSAFile, style: CueStyle) -> Iterator[str]:
    """What is wrong, with the number and the time of the subtitle."""
    events = list(file)
    shortest, longest, gap = (
        samples * 1000 / SAMPLE_RATE for samples in (style.min_samples, style.max_samples, style.min_gap)
    )
    for number, event in enumerate(events, 1):
        at = f"{number} at {pysubs2.time.ms_to_str(event.start, fractions=True)}"
        lines = event.plaintext.split("\n")
        read = sum(map(columns, lines)) + len(lines) - 1
        speed = read * 1000 / max(event.duration, 1)
        if not all(map(str.strip, lines)):
            yield f"{at}: a line has no text"
        if len(lines) > style.max_lines:
            yield f"{at}: {len(lines)} lines, at most {style.max_lines}"
        if (widest := max(map(columns, lines))) > style.max_line_chars:
            yield f"{at}: a line of {widest} columns, at most {style.max_line_chars}"
        if read * 1000 > style.max_cps * (event.duration + _ROUNDING_MS):
            yield f"{at}: {speed:.1f} columns per second, at most {style.max_cps:g}"
        if event.duration + _ROUNDING_MS < shortest:
            yield f"{at}: stays {event.duration} ms, at least {shortest:.0f}"
        if event.duration - _ROUNDING_MS > longest:
            yield f"{at}: stays {event.duration} ms, at most {longest:.0f}"
    frame = 1000 / style.fps if style.fps else 0.0  # what is left where a profile wants no gap
    for number, (event, after) in enumerate(pairwise(events), 1):
        between = after.start - event.end
        if between + _ROUNDING_MS < gap:
            yield f"{number}: {between} ms before the next one, at least {gap:.0f}"
        elif max(gap, frame) + _ROUNDING_MS < between < _FLICKER_MS - _ROUNDING_MS:
            yield f"{number}: {between} ms before the next one, which flickers: {gap:.0f}, or half a second"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("file", type=Path)
    parser.add_argument("--language", default="en", help="ISO 639-1")
    parser.add_argument("--profile", choices=get_args(ProfileName), default="netflix")
    parser.add_argument("--fps", type=float, help="the frame rate that the file was made for")
    given = parser.parse_args()
    style = cue_style(Options(profile=given.profile, fps=given.fps), given.language)
    file = pysubs2.load(str(given.file))
    broken = list(broken_rules(file, style))
    print("\n".join([*broken, f"{len(file)} subtitles, {len(broken)} rules broken"]))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
