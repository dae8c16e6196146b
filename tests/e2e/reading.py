"""Reads subtitles and transcripts strictly, and without code of the service."""

import html
import itertools
import json
import re
import statistics
import string
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jiwer

_SRT_TIMES = re.compile(r"(\d\d):([0-5]\d):([0-5]\d),(\d{3}) --> (\d\d):([0-5]\d):([0-5]\d),(\d{3})")
_VTT_TIMES = re.compile(r"(\d\d+):([0-5]\d):([0-5]\d)\.(\d{3}) --> (\d\d+):([0-5]\d):([0-5]\d)\.(\d{3})")
_VTT_SHORT_TIMES = re.compile(r"()([0-5]\d):([0-5]\d)\.(\d{3}) --> ()([0-5]\d):([0-5]\d)\.(\d{3})")


@dataclass(frozen=True)
class Cue:
    start: float
    end: float
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.lines)


def read_srt(text: str) -> list[Cue]:
    """The cues of a SubRip file; fails if a strict player would refuse it."""
    cues = []
    for number, block in enumerate(_blocks(text), start=1):
        index, times, *lines = block.split("\n")
        assert index == str(number)
        match = _SRT_TIMES.fullmatch(times)
        assert match, times
        cues.append(_cue(match, lines))
    return _in_order(cues)


def read_vtt(text: str) -> list[Cue]:
    """The cues of a WebVTT file; fails if a strict player would refuse it."""
    header, *blocks = _blocks(text)
    assert header == "WEBVTT"
    cues = []
    for block in blocks:
        times, *lines = block.split("\n")
        if "-->" not in times:  # a cue may have a name
            times, *lines = lines
        match = _VTT_TIMES.fullmatch(times) or _VTT_SHORT_TIMES.fullmatch(times)
        assert match, times
        assert not any("<" in line or re.search(r"&(?!\w+;|#\d+;)", line) for line in lines)
        cues.append(_cue(match, [html.unescape(line) for line in lines]))
    return _in_order(cues)


def _blocks(text: str) -> list[str]:
    assert "\r" not in text
    assert "\ufeff" not in text
    assert text in ("", "WEBVTT\n", "WEBVTT\n\n") or re.search(r"[^\n]\n{1,2}\Z", text)
    return text.rstrip("\n").split("\n\n") if text.strip() else []


def _cue(match: re.Match[str], lines: list[str]) -> Cue:
    hours, minutes, seconds, millis = (
        [int(match[i] or 0) for i in (k, k + 4)] for k in range(1, 5)
    )  # of start and end
    start, end = (hours[i] * 3600 + minutes[i] * 60 + seconds[i] + millis[i] / 1000 for i in (0, 1))
    assert lines
    for line in lines:
        assert line.strip() == line != ""
        assert "-->" not in line
    return Cue(start, end, tuple(lines))


def _in_order(cues: list[Cue]) -> list[Cue]:
    for cue in cues:
        assert cue.start < cue.end
    for before, after in itertools.pairwise(cues):
        assert before.end <= after.start
    return cues


@dataclass(frozen=True)
class Talk:
    """A recording, and what is said in it."""

    path: Path

    @property
    def truth(self) -> dict[str, Any]:
        truth: dict[str, Any] = json.loads(self.path.with_suffix(".json").read_text(encoding="utf-8"))
        return truth

    @property
    def text(self) -> str:
        return " ".join(cue["text"] for cue in self.truth["cues"])

    @property
    def english(self) -> str:
        return " ".join(cue["english"] for cue in self.truth["cues"])

    @property
    def starts(self) -> list[float]:
        return [cue["start"] for cue in self.truth["cues"]]

    def speaker(self, start: float, end: float) -> str:
        """Who speaks most between two times (s)."""
        shared: Counter[str] = Counter()
        for cue in self.truth["cues"]:
            shared[cue["speaker"]] += max(min(cue["end"], end) - max(cue["start"], start), 0)
        return shared.most_common(1)[0][0]


def speakers_of(talk: Talk, parts: Iterable[tuple[float, float, str]]) -> tuple[dict[str, str], float]:
    """Who each label stands for, by start, end and label of parts, and how much of the parts is right."""
    said = Counter((label, talk.speaker(start, end)) for start, end, label in parts)
    labels = {label: max((n, name) for (of, name), n in said.items() if of == label)[1] for label, _ in said}
    return labels, sum(n for (label, name), n in said.items() if labels[label] == name) / said.total()


def words(text: str) -> str:
    """A text without its punctuation and capitals."""
    return " ".join(text.lower().translate(str.maketrans("", "", string.punctuation + "¿¡")).split())


def word_error_rate(truth: str, transcribed: str) -> float:
    return float(jiwer.wer(words(truth), words(transcribed)))


def median_miss(truth: list[float], times: list[float]) -> float:
    """The median distance of the true times from the nearest of `times`."""
    return statistics.median(min(abs(true - time) for time in times) for true in truth)
