"""The limits that cues keep, by profile and language. Pure.

Widths are columns, speeds columns per second: a full-width character takes two, so 16 characters of Chinese
are 32 columns. `docs/subtitles.md` shows these tables to users.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from app.options import Auto, Options, ProfileName
from app.transcript.cues.lines import SAMPLES_PER_MS, CueStyle
from workers.messages import SAMPLE_RATE


@dataclass(frozen=True, slots=True)
class Reading:
    """What depends on the language."""

    line_chars: int  # columns
    cps: float  # columns per second


@dataclass(frozen=True, slots=True)
class Profile:
    """The limits of one publisher."""

    reading: Reading  # of the languages without a row
    rows: Mapping[str, Reading]  # by ISO 639 code
    max_lines: int = 2
    min_cue_s: float = 5 / 6
    max_cue_s: float = 7.0
    min_gap_s: float | None = None  # None: two frames
    fps: float | None = None


def _rows(rows: dict[str, Reading]) -> Mapping[str, Reading]:
    """One entry for each of the codes that a key names."""
    return MappingProxyType({code: reading for codes, reading in rows.items() for code in codes.split()})


# Netflix Timed Text Style Guides (partnerhelp.netflixstudios.com): General Requirements (2 lines, 5/6 s to
# 7 s, 2 frames between subtitles at any rate), and "Character Limitation" and "Reading Speed Limits" of the
# guide of each language, for programmes for adults. These are the speeds for SDH, the subtitles in the
# language of the recording. The guides of Japanese and Chinese allow SDH somewhat wider lines.
DEFAULT = Profile(
    Reading(42, 20),
    _rows(
        {
            "zh yue": Reading(32, 22),  # 16 characters, 11 a second
            "ja": Reading(26, 14),  # 13 characters, 7 a second
            "ko": Reading(32, 28),  # 16 syllables, 14 a second; Latin letters and spaces count half
            "th": Reading(35, 20),  # tone marks, and vowels above and below, do not count
            "ar": Reading(42, 23),
            "hi": Reading(42, 25),
            "bn kn ml mr ta te": Reading(42, 22),
        }
    ),
)

# The same guides for subtitles that are not SDH.
NETFLIX = Profile(
    Reading(42, 17),
    _rows(
        {
            "en": Reading(42, 20),
            "zh yue": Reading(32, 18),  # 9 characters a second
            "ja": Reading(26, 8),  # 4 characters a second
            "ko": Reading(32, 24),  # 12 syllables a second
            "th": Reading(35, 17),
            "ar": Reading(42, 20),
            "hi bn kn ml mr ta te": Reading(42, 22),
        }
    ),
)

# The guides of British and European broadcasters do not cover these scripts: the figures are Netflix's. Only
# the speed of Thai is the broadcasters', which is lower.
_OTHER_SCRIPTS_ON_AIR = _rows(
    {"zh yue": Reading(32, 18), "ja": Reading(26, 8), "ko": Reading(32, 24), "th": Reading(35, 15)}
)

# BBC Subtitle Guidelines 1.2.3 (bbc.github.io/subtitle-guidelines): 3.1, 37 characters, which is the limit
# of Teletext and fits 68 % of the width online; 3.3, two lines; 4, 160 to 180 words a minute, which is 15
# characters a second at five a word; 4.1, 0.3 s for each word, so 1 s for three; 4.5, no gaps unless there
# is a pause. Longest time: no figure, so the usual 7 s. 25 frames per second: British television.
BBC = Profile(Reading(37, 15), _OTHER_SCRIPTS_ON_AIR, min_cue_s=1.0, min_gap_s=0.0, fps=25)

# Subtitle standards of ARD, ORF, SRF and ZDF 1.3 (untertitelrichtlinien.de): two lines of 37 characters, as
# in Teletext, and 13 to 15 characters a second. Code of Good Subtitling Practice (Ivarsson and Carroll,
# esist.org): 1 s to 7 s, and four frames between subtitles. EBU Tech 3264: 25 frames per second.
BROADCAST = Profile(Reading(37, 15), _OTHER_SCRIPTS_ON_AIR, min_cue_s=1.0, min_gap_s=4 / 25, fps=25)

# Captions burnt into vertical video (9:16). There is no common guide; this is what creators do: one short
# line in large type, changed quickly and without gaps. 20 columns fit between the controls of the apps.
SOCIAL = Profile(
    Reading(20, 25),
    _rows({"zh yue": Reading(20, 22), "ja": Reading(20, 14), "ko": Reading(20, 28)}),
    max_lines=1,
    min_cue_s=0.5,
    max_cue_s=3.0,
    min_gap_s=0.0,
)

PROFILES: Mapping[ProfileName | None, Profile] = MappingProxyType(
    {None: DEFAULT, "netflix": NETFLIX, "bbc": BBC, "broadcast": BROADCAST, "social": SOCIAL}
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
