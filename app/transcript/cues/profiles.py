"""The limits that cues keep, by profile and language. Pure.

Widths are columns, speeds columns per second: a full-width character takes two, so 16 characters of Chinese
are 32 columns. `profiles.toml` has the tables; `docs/subtitles.md` shows them to users.
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from app.common.options import Auto, Options, ProfileName
from app.transcript.cues.lines import SAMPLES_PER_MS, CueStyle
from workers.messages import SAMPLE_RATE


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """What depends on the language."""

    line_chars: int  # columns
    cps: float  # columns per second


@dataclass(frozen=True, slots=True)
class Profile:
    """The limits of one publisher."""

    reading: ReadingLimits  # of the languages without a row
    rows: Mapping[str, ReadingLimits]  # by ISO 639 code
    max_lines: int = 2
    min_cue_s: float = 5 / 6
    max_cue_s: float = 7.0
    min_gap_s: float | None = None  # None: two frames
    fps: float | None = None


def _profile(table: dict[str, Any]) -> Profile:
    """The profile of a table in the file, whose rows name one code or several."""
    rows = {code: ReadingLimits(*row) for codes, row in table.pop("rows").items() for code in codes.split()}
    return Profile(rows.pop("other"), MappingProxyType(rows), **table)


_TABLES: dict[Any, dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

# None: the service's own defaults.
PROFILES: Mapping[ProfileName | None, Profile] = MappingProxyType(
    {None if name == "default" else name: _profile(table) for name, table in _TABLES.items()}
)

_NTSC = (24, 30, 48, 60, 120)  # these times 1000/1001, given as 23.976, 29.97, ...
_USUAL_FPS = 24  # of which two frames are the gap if there is no frame rate

N = TypeVar("N", int, float)


def cue_style(options: Options, language: str) -> CueStyle:
    """The limits for cues in the language, an ISO 639 code. What the options leave open, the profile decides.

    Times are whole milliseconds, or whole frames if there is a frame rate. Where a frame is no whole number
    of samples, minimums are rounded down to a sample and maximums up: each remains that number of frames.
    """
    profile = PROFILES[options.profile]
    reading = profile.rows.get(language, profile.reading)
    fps = profile.fps if options.fps is None else _exact_rate(options.fps)
    two_frames = 2 / (fps or _USUAL_FPS)
    default_gap = two_frames if profile.min_gap_s is None else profile.min_gap_s
    return CueStyle(
        max_line_chars=_chosen(options.max_line_chars, reading.line_chars),
        max_lines=_chosen(options.max_lines, profile.max_lines),
        max_cps=_chosen(options.max_cps, reading.cps),
        min_samples=_whole(_chosen(options.min_cue_s, profile.min_cue_s), fps, at_least=True),
        max_samples=_whole(_chosen(options.max_cue_s, profile.max_cue_s), fps, at_least=False),
        min_gap=_whole(_chosen(options.min_gap_s, default_gap), fps, at_least=True),
        fps=fps,
        start_offset=round(options.start_offset_s * 1000) * SAMPLES_PER_MS,
    )


def _chosen(value: N | Auto, default: N) -> N:
    return default if isinstance(value, str) else value


def _exact_rate(fps: float) -> float:
    """23.976 and its like stand for 24000/1001."""
    for whole in _NTSC:
        exact = whole * 1000 / 1001
        if abs(fps - exact) < 0.005:
            return exact
    return fps


def _whole(duration_s: float, fps: float | None, at_least: bool) -> int:
    """Samples of the fewest frames, else milliseconds, that last so long; or of the most that last no more.

    Binary fractions are not exact: 0.28 * 1000 is 280.00000000000006.
    """
    ticks_per_s = fps or 1000
    to_ticks, to_samples = (math.ceil, math.floor) if at_least else (math.floor, math.ceil)
    ticks = to_ticks(round(duration_s * ticks_per_s, 6))
    return to_samples(round(ticks * SAMPLE_RATE / ticks_per_s, 6))
