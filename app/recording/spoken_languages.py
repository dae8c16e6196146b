"""Which language is spoken when, in one clip. Pure: it depends on the clip and its own language alone.

What decides is the language of each stretch of speech between pauses. A stretch that is doubtful follows the
surer ones in its clip, or else the clip's own language.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from app.common.languages import near_languages
from app.recording.clip_planner import MARGIN_SAMPLES
from app.transcript.timeline import joined_spans
from workers.messages import SAMPLE_RATE, LanguageProbs, Span

_PAUSE_SAMPLES = SAMPLE_RATE // 5  # a language changes only in a pause that lasts this long
_LONGEST_EXAMINED_SAMPLES = 4 * SAMPLE_RATE  # more says no more
_LEAST_SAMPLES = 2 * SAMPLE_RATE  # of speech in a language that is not the clip's own
_LEAST_PROBABILITY = 0.02  # of each language: no stretch excludes one
# Costs of a change, in the unit of log-probabilities times seconds: two seconds that are clear outweigh the
# changes around them. To suspect a change, less is enough: then each stretch is detected alone.
_CHANGE_COST, _SUSPECTED_CHANGE_COST = 3.5, 1.0
_SURE = 0.5  # the probability of the language of a stretch, if it counts for a change
# Of no living speaker: what the model takes for these is nearly always doubtful speech in another language.
_DEAD = frozenset({"la", "sa"})


@dataclass(frozen=True, slots=True)
class LanguageRun:
    """Stretches that follow one another in one language. Positions are samples of the recording."""

    language: str  # ISO 639-1
    start: int  # in the pause before; it may lie before the clip
    end: int  # in the pause after


def stretches_of(speech: Iterable[Span]) -> tuple[Span, ...]:
    """The stretches of speech between pauses that are long enough for a change of language."""
    return tuple(joined_spans(speech, _PAUSE_SAMPLES - 1))


def examined_part(stretch: Span) -> Span:
    """The part of a stretch in which its language is detected."""
    start, end = stretch
    return start, min(end, start + _LONGEST_EXAMINED_SAMPLES)


def decisive_probs(in_clip: LanguageProbs, alone: LanguageProbs) -> LanguageProbs:
    """The mean of two detections of a stretch, of which that without its neighbours counts twice.

    Alone, a sentence of one language may be taken for any other; in its clip, for that of its neighbours.
    """
    one, other = dict(in_clip), dict(alone)
    return tuple((name, (one.get(name, 0.0) + 2 * other.get(name, 0.0)) / 3) for name in one | other)


def find_runs(
    stretches: Sequence[Span],
    probs: Sequence[LanguageProbs],
    own: str,
    languages: Sequence[str] = (),
    *,
    suspects: bool = False,
) -> list[LanguageRun]:
    """The languages of a clip's stretches, in order: the likeliest ones, if each change has a cost.

    `probs`: of each stretch; empty if it was not examined. `own`: the language of the clip, from which the
    first stretch may change. Another one needs `_LEAST_SAMPLES` of speech that is not doubtful. `languages`:
    those that a client expects, if it does. `suspects`: the runs are those that may be, if there are others.
    """
    change_cost, least_prob = (_SUSPECTED_CHANGE_COST, 0.0) if suspects else (_CHANGE_COST, _SURE)
    spoken = [
        {name: prob for name, prob in of_stretch if name in languages or name not in _DEAD}
        for of_stretch in probs
    ]
    seconds = [(end - start) / SAMPLE_RATE for start, end in map(examined_part, stretches)]
    names = _names(own, spoken, seconds)
    while True:
        scores = [
            {name: weight * math.log(max(_LEAST_PROBABILITY, _likelihood(name, probs))) for name in names}
            for probs, weight in zip(spoken, seconds, strict=True)
        ]
        likeliest = _likeliest(scores, own, change_cost)
        sure: Counter[str] = Counter()
        for name, (start, end), of_stretch in zip(likeliest, stretches, spoken, strict=True):
            is_doubtful = of_stretch and _likelihood(name, of_stretch) < least_prob
            sure[name] += 0 if is_doubtful else end - start
        rare = {name for name, samples in sure.items() if samples < _LEAST_SAMPLES} - {own}
        if not rare:
            return _runs(stretches, likeliest)
        names = [name for name in names if name not in rare]


def _names(own: str, spoken: Sequence[Mapping[str, float]], seconds: Sequence[float]) -> list[str]:
    """The languages that come into question: of near ones the clip's own, or else the likeliest."""
    totals = {own: math.inf}
    for probs, weight in zip(spoken, seconds, strict=True):
        for name, probability in probs.items():
            totals[name] = totals.get(name, 0.0) + probability * weight
    ranked = sorted(totals, key=lambda name: (-totals[name], name))
    first_of = {near_languages(name): name for name in reversed(ranked)}
    return [name for name in ranked if first_of[near_languages(name)] == name]


def _likelihood(name: str, probs: Mapping[str, float]) -> float:
    """The probability of a language or a near one."""
    return sum(probs.get(near, 0.0) for near in near_languages(name))


def _likeliest(scores: Sequence[Mapping[str, float]], own: str, change_cost: float) -> tuple[str, ...]:
    """The language of each stretch, by the best sum of scores less the costs of changes: a Viterbi search."""
    # The best sum for what ends in each language, and the languages up to there.
    best: dict[str, tuple[float, tuple[str, ...]]]
    best = {name: (0.0 if name == own else -change_cost, ()) for name in scores[0]}
    for of_stretch in scores:
        highest, leader = max(best.values())
        for name, score in of_stretch.items():
            before, languages = max(best[name], (highest - change_cost, leader))
            best[name] = (before + score, (*languages, name))
    return max(best.values())[1]


def _runs(stretches: Sequence[Span], languages: Sequence[str]) -> list[LanguageRun]:
    """Runs of equal languages; each pause between two of them is divided, with a margin for each at most."""
    edges = [
        (min(end + MARGIN_SAMPLES, (end + start) // 2), max(start - MARGIN_SAMPLES, (end + start) // 2))
        for (_, end), (start, _) in pairwise(stretches)
    ]
    starts = [stretches[0][0] - MARGIN_SAMPLES, *(start for _, start in edges)]
    ends = [*(end for end, _ in edges), stretches[-1][1] + MARGIN_SAMPLES]
    places = groupby(range(len(stretches)), key=languages.__getitem__)
    runs = ((language, list(of_run)) for language, of_run in places)
    return [LanguageRun(language, starts[of_run[0]], ends[of_run[-1]]) for language, of_run in runs]
