"""The rules and the search of the decoder in torch, against plain loops. No model."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.whisper.backend import Search, SpecialTokens
from workers.whisper.torch.search import Texts, advance
from workers.whisper.torch.token_rules import TokenRules, gumbel_noise

# A small vocabulary: texts 0 to 9, then these, then 70 timestamps.
EOT, SOT, NO_SPEECH, NO_TIMESTAMPS, FIRST = 10, 11, 12, 13, 14
VOCABULARY = FIRST + 70
SPECIAL = SpecialTokens(SOT, EOT, NO_TIMESTAMPS, NO_SPEECH, suppressed=(3, SOT, NO_SPEECH))
RULES = TokenRules(SPECIAL, [0, EOT], VOCABULARY, "cpu")

texts = st.lists(st.integers(0, VOCABULARY - 1).filter(lambda token: token != EOT), max_size=12)


def allowed(history: Sequence[int], logits: np.ndarray) -> set[int]:
    """The tokens that may come next, as `ApplyTimestampRules` of openai-whisper and CTranslate2 has it."""
    tokens = set(range(VOCABULARY)) - {*SPECIAL.suppressed, NO_TIMESTAMPS}
    if not history:
        return {token for token in tokens - {0, EOT} if FIRST <= token <= FIRST + 50}
    last = history[-1]
    before = history[-2] if len(history) > 1 else last
    if last >= FIRST and before >= FIRST:
        return {token for token in tokens if token < FIRST}
    stamps = [token for token in history if token >= FIRST]
    if last >= FIRST:
        tokens -= {*range(EOT), *range(FIRST, last)}
    elif stamps:
        tokens -= set(range(FIRST, stamps[-1] + 1))
    together = np.logaddexp.reduce([logits[token] for token in tokens if token >= FIRST] or [-math.inf])
    if together > max((logits[token] for token in tokens if token < FIRST), default=-math.inf):
        tokens = {token for token in tokens if token >= FIRST}
    return tokens


def state(history: Sequence[int]) -> tuple[torch.Tensor, ...]:
    """What the rules look at: last token, the one before, and the last timestamp."""
    padded = [FIRST, FIRST, *history]
    latest = next((token for token in reversed(history) if token >= FIRST), FIRST - 1)
    return tuple(torch.tensor([[value]]) for value in (padded[-1], padded[-2], latest))


@given(texts, st.integers(0, 2**32 - 1))
@settings(max_examples=300, deadline=None)
def test_the_tokens_that_may_come_next(history: list[int], seed: int) -> None:
    logits = np.random.default_rng(seed).normal(0, 3, VOCABULARY).astype(np.float32)
    given = torch.from_numpy(logits).reshape(1, 1, -1)
    ruled = RULES.forbid(given, *state(history), first=not history)[0, 0]
    assert set(ruled.isfinite().nonzero()[:, 0].tolist()) == allowed(history, logits)


@given(st.lists(st.integers(0, 3), max_size=14), st.integers(1, 4))
@settings(max_examples=300, deadline=None)
def test_no_run_of_tokens_comes_twice(history: list[int], size: int) -> None:
    padded = torch.tensor([[[*history, *[0] * (16 - len(history))]]])
    logits = torch.zeros((1, 1, 6))
    ruled = RULES.forbid_repetition(logits, torch.tensor(len(history)), padded, size)
    runs = [tuple(history[at : at + size]) for at in range(len(history) - size + 1)]
    expected = {token for token in range(6) if (*history[len(history) - size + 1 :], token) in runs}
    if len(history) < size:
        expected = set()
    assert set((~ruled[0, 0].isfinite()).nonzero()[:, 0].tolist()) == expected


def search(logits: np.ndarray, beams: int, limit: int) -> tuple[list[int], float]:
    """Beam search as CTranslate2's, for logits that depend on the last token alone: (V, V)."""
    alive: list[tuple[float, list[int]]] = [(0.0, [])]
    ended: list[tuple[float, list[int]]] = []
    for step in range(limit):
        candidates = []
        for score, history in alive:
            row = logits[history[-1] if history else SOT].astype(np.float64)
            able = sorted(allowed(history, row.astype(np.float32)))
            logprobs = row[able] - np.logaddexp.reduce(row[able])
            candidates += [
                (score + logprob, [*history, token]) for token, logprob in zip(able, logprobs, strict=True)
            ]
        candidates.sort(key=lambda candidate: -candidate[0])
        candidates = candidates[: 2 * beams]
        others = [candidate for candidate in candidates[beams:] if candidate[1][-1] != EOT]
        alive = []
        for score, history in candidates[:beams]:
            ends = history[-1] == EOT
            if ends or step + 1 == limit:
                text = history[:-1] if ends else history
                ended.append((score / len(text), text))
                if others:
                    alive.append(others.pop(0))
            else:
                alive.append((score, history))
        if len(ended) >= beams:
            break
    score, text = max(ended)
    return text, score


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 3, 5]), st.integers(2, 12))
@settings(max_examples=100, deadline=None)
def test_the_best_text_is_that_of_a_plain_search(seed: int, beams: int, limit: int) -> None:
    logits = np.random.default_rng(seed).normal(0, 4, (VOCABULARY, VOCABULARY)).astype(np.float32)
    found = decoded(logits, Search(beams), [limit, 3])
    for (tokens, score), most in zip(found, (limit, 3), strict=True):
        expected, expected_score = search(logits, beams, most)
        assert tokens == expected
        assert score == pytest.approx(expected_score, abs=1e-4)


def decoded(
    logits: np.ndarray, how: Search, limits: list[int], audio: Sequence[int] = (1, 2)
) -> list[tuple[list[int], float]]:
    """The best text of each window and its score, if the logits depend on the last token alone."""
    texts = Texts(len(limits), how.beams, torch.device("cpu"))
    texts.begin(limits, audio, how, RULES)
    table = torch.from_numpy(logits)
    start = table[torch.full_like(texts.last, SOT)]
    for step in range(max(limits)):
        advance(texts, table[texts.last] if step else start, RULES, how, first=not step)
    assert texts.done.all()
    return [
        (tokens[:length], score)
        for tokens, length, score in zip(
            texts.best.tolist(), texts.best_length.tolist(), texts.best_score.tolist(), strict=True
        )
    ]


def test_samples_are_those_of_the_window_wherever_it_is() -> None:
    logits = np.random.default_rng(0).normal(0, 1, (VOCABULARY, VOCABULARY)).astype(np.float32)
    how = Search(5, 0.8)
    first, second = decoded(logits, how, [12, 12], audio=[7, 8])
    assert first != second, "windows have samples of their own"
    assert decoded(logits, how, [12, 12], audio=[9, 7])[1] == first
    assert decoded(logits, how, [12, 3], audio=[7, 8])[0] == first


def test_noise_samples_tokens_as_often_as_they_are_likely() -> None:
    probabilities = torch.tensor([0.5, 0.3, 0.15, 0.05])
    counts: Counter[int] = Counter()
    for step in range(200):
        noise = gumbel_noise(torch.arange(10), 5, torch.tensor(step), 4)
        assert noise.isfinite().all()
        counts.update((probabilities.log() + noise).argmax(-1).flatten().tolist())
    assert [counts[token] / 10_000 for token in range(4)] == pytest.approx(probabilities.tolist(), abs=0.02)
