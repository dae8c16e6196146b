"""Stand-ins for scores that are not finite."""

import math

import pytest

from workers.messages import LOWEST_LOGPROB
from workers.whisper.results import finite_logprob, finite_probability, rank_languages

NOT_FINITE = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("value", NOT_FINITE)
def test_a_score_that_is_not_finite_becomes_the_lowest(value: float) -> None:
    assert finite_logprob(value) == LOWEST_LOGPROB
    assert finite_probability(value) == 0


def test_other_scores_stay() -> None:
    assert (finite_logprob(-0.25), finite_probability(0.75)) == (-0.25, 0.75)


def test_languages_without_a_probability_come_last() -> None:
    probs = [("de", math.nan), ("en", 0.2), ("es", 0.7), ("fr", 0.2)]
    assert rank_languages(probs) == (("es", 0.7), ("en", 0.2), ("fr", 0.2), ("de", 0.0))
