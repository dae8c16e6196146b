"""Finite stand-ins for scores that overflowed: in float16, a decoder can give NaN and infinity. Pure.

JSON has neither of them, and every comparison with NaN is false.
"""

import math
from collections.abc import Iterable

from workers.messages import LOWEST_LOGPROB

LanguageProbs = tuple[tuple[str, float], ...]


def finite_logprob(value: float) -> float:
    """The average log-probability, or `LOWEST_LOGPROB`, with which a window counts as poor."""
    return float(value) if math.isfinite(value) else LOWEST_LOGPROB


def finite_probability(value: float) -> float:
    """The probability, or 0 if it is unknown."""
    return float(value) if math.isfinite(value) else 0.0


def rank_languages(probs: Iterable[tuple[str, float]]) -> LanguageProbs:
    """Languages with their probabilities, the likeliest first; those without a probability come last."""
    finite = [(language, finite_probability(prob)) for language, prob in probs]
    return tuple(sorted(finite, key=lambda entry: -entry[1]))
