"""The check of a file of subtitles finds each rule that one breaks."""

import pysubs2

from app.common.options import Options
from app.transcript.cues.profiles import cue_style
from bench.subtitle_rules import broken_rules

GOOD = """\
1
00:00:01,000 --> 00:00:03,000
Nobody knows
what is behind the house.

2
00:00:03,084 --> 00:00:05,000
Then they went.

"""
BAD = """\
1
00:00:01,000 --> 00:00:01,500
Nobody knows at all what it is that is behind the house.

2
00:00:01,550 --> 00:00:09,000
One
two
three

3
00:00:09,300 --> 00:00:11,000
Then they went.

"""


def found(text: str) -> list[str]:
    style = cue_style(Options(profile="netflix"), "en")
    return list(broken_rules(pysubs2.SSAFile.from_string(text), style))


def test_each_broken_rule_is_found() -> None:
    assert found(GOOD) == []
    assert found(BAD) == [
        "1 at 0:00:01.000: a line of 56 columns, at most 42",
        "1 at 0:00:01.000: 112.0 columns per second, at most 20",
        "1 at 0:00:01.000: stays 500 ms, at least 834",
        "2 at 0:00:01.550: 3 lines, at most 2",
        "2 at 0:00:01.550: stays 7450 ms, at most 7000",
        "1: 50 ms before the next one, at least 84",
        "2: 300 ms before the next one, which flickers: 84, or half a second",
    ]
