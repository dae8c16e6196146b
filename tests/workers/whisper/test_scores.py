"""Stand-ins for scores that are not finite, and the digits of others."""

import math

import pytest

from workers.messages import LOWEST_LOGPROB
from workers.whisper.results import likeliest, score

NOT_FINITE = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("value", NOT_FINITE)
def test_a_score_that_is_not_finite_is_unknown(value: float) -> None:
    assert score(value, LOWEST_LOGPROB) == LOWEST_LOGPROB


def test_other_scores_stay() -> None:
    assert (score(-0.25, LOWEST_LOGPROB), score(0.75, 0)) == (-0.25, 0.75)


def test_languages_without_a_probability_come_last() -> None:
    probs = [("de", math.nan), ("en", 0.2), ("es", 0.7), ("fr", 0.2)]
    assert likeliest(probs) == (("es", 0.7), ("en", 0.2), ("fr", 0.2), ("de", 0.0))


def test_last_digits_are_dropped() -> None:
    assert score(-0.99999998, 0) == score(-1.00000002, 0) == -1.0
    assert score(0.60000001, 0) == score(0.59999999, 0) == 0.6
    assert str(score(-1e-9, 0)) == "0.0"


def test_the_last_digit_chooses_no_language() -> None:
    ranked = {likeliest([("es", 0.3 + noise), ("de", 0.3)]) for noise in (-1e-7, 0, 1e-7)}
    assert ranked == {(("de", 0.3), ("es", 0.3))}
