"""The limits of each profile, by language."""

import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

from app.common.options import Options
from app.transcript.cues.lines import MIN_GAP, SHORTEST_CUE
from app.transcript.cues.profiles import PROFILES, cue_style
from app.transcript.text.scripts import width
from tests.transcript.transcript_cases import samples

# Lines, shortest and longest time (s), gap (s), frames per second.
SHAPES = {
    None: (2, 0.834, 7, 0.084, None),
    "netflix": (2, 0.834, 7, 0.084, None),
    "bbc": (2, 1, 7, 0, 25),
    "broadcast": (2, 1, 7, 0.16, 25),
    "social": (1, 0.5, 3, 0, None),
}


def test_every_profile_is_tested():
    assert PROFILES.keys() == SHAPES.keys()


@pytest.mark.parametrize(("profile", "shape"), SHAPES.items())
@pytest.mark.parametrize("language", ["en", "ja"])
def test_times_of_each_profile(profile, shape, language):
    lines, shortest, longest, gap, fps = shape
    style = cue_style(Options(profile=profile), language)
    assert (style.max_lines, style.fps, style.start_offset) == (lines, fps, 0)
    assert (style.min_samples, style.max_samples) == (samples(shortest), samples(longest))
    assert style.min_gap == samples(gap)


def test_sixteen_characters_of_chinese_fill_a_line():
    assert width("今天天气很好我们一起去公园散步吧") == cue_style(Options(), "zh").max_line_chars == 32


CHOSEN = {
    "max_line_chars": (33, "max_line_chars", 33),
    "max_lines": (3, "max_lines", 3),
    "max_cps": (12.5, "max_cps", 12.5),
    "min_cue_s": (1.2, "min_samples", samples(1.2)),
    "max_cue_s": (5, "max_samples", samples(5)),
    "min_gap_s": (0.2, "min_gap", samples(0.2)),
    "fps": (50, "fps", 50),
    "start_offset_s": (0.25, "start_offset", samples(0.25)),
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("language", ["en", "ja"])
def test_a_number_wins_over_profile_and_language(profile, language):
    rest = cue_style(Options(profile=profile), language)
    for option, (number, limit, value) in CHOSEN.items():
        style = cue_style(Options.model_validate({"profile": profile, option: number}), language)
        assert getattr(style, limit) == value, option
        if option != "fps":  # gap and times follow the frames
            changed = {name for name in style.__slots__ if getattr(style, name) != getattr(rest, name)}
            assert changed <= {limit}, option


@pytest.mark.parametrize(
    ("given", "exact"),
    [
        (23.976, 24000 / 1001), (23.98, 24000 / 1001), (29.97, 30000 / 1001), (47.952, 48000 / 1001),
        (59.94, 60000 / 1001), (119.88, 120000 / 1001), (10, 10), (24, 24), (25, 25), (30, 30), (50, 50),
        (60, 60), (120, 120), (12.5, 12.5), (23.9, 23.9),
    ],
)  # fmt: skip
def test_frame_rates_are_exact(given, exact):
    assert cue_style(Options(fps=given), "en").fps == exact


@pytest.mark.parametrize("fps", [10, 23.976, 24, 25, 29.97, 30, 50, 59.94, 60, 120])
@pytest.mark.parametrize("profile", [None, "netflix"])
def test_with_frames_the_gap_is_two_of_them_and_times_are_whole_frames(fps, profile):
    style = cue_style(Options(profile=profile, fps=fps), "en")
    whole = round(fps)
    rate = Fraction(fps) if fps == whole else Fraction(whole * 1000, 1001)
    frame = 16_000 / rate  # samples
    assert style.min_gap == math.floor(2 * frame)
    assert style.min_samples == math.floor(math.ceil(Fraction(5, 6) * rate) * frame)
    assert style.max_samples == math.ceil(math.floor(7 * rate) * frame)


def test_twenty_frames_of_24_are_five_sixths_of_a_second():
    style = cue_style(Options(fps=24), "en")
    assert (style.min_samples, style.max_samples) == (int(20 / 24 * 16_000), 7 * 16_000)


def test_without_frames_the_gap_is_two_frames_of_a_film():
    assert cue_style(Options(), "en").min_gap == MIN_GAP
    assert cue_style(Options(min_gap_s=0), "en").min_gap == 0


def test_times_are_whole_milliseconds():
    style = cue_style(Options(min_cue_s=0.28, max_cue_s=1.1, min_gap_s=0.07, start_offset_s=0.29), "en")
    times = (style.min_samples, style.max_samples, style.min_gap, style.start_offset)
    assert times == (280 * 16, 1100 * 16, 70 * 16, 290 * 16)


def test_the_longest_time_may_be_below_the_shortest():
    style = cue_style(Options(min_cue_s=5, max_cue_s=1), "en")
    assert SHORTEST_CUE < style.max_samples < style.min_samples


def test_the_numbers_of_a_job_stored_without_profiles_remain():
    stored = {"max_line_chars": 42, "max_lines": 2, "max_cps": 20.0, "min_cue_s": 5 / 6, "max_cue_s": 7.0}
    style = cue_style(Options.model_construct(**{**Options().model_dump(), **stored}), "ja")
    assert (style.max_line_chars, style.max_lines, style.max_cps) == (42, 2, 20)
    assert (style.min_samples, style.max_samples) == (samples(0.834), samples(7))


def test_the_manual_gives_the_same_figures():
    """The table of docs/subtitles.md: a row for some languages, a column for each profile."""
    manual = (Path(__file__).parents[2] / "docs" / "subtitles.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|`]*((?:`\w+`(?:, )?)+|all others) \|(.*)\|$", manual, re.MULTILINE)
    documented = set()
    for codes, cells in [row for row in rows if "·" in row[1]]:
        for code in re.findall(r"`(\w+)`", codes) or ["other"]:
            documented.add(code)
            for name, cell in zip(PROFILES, cells.split("|"), strict=True):
                style = cue_style(Options(profile=name), code)
                assert cell.strip() == f"{style.max_line_chars} · {style.max_cps:g}", (code, name)
    assert documented == {"other", *(code for profile in PROFILES.values() for code in profile.rows)}
