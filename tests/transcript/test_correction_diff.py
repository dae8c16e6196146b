from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.transcript.corrections import diff
from app.transcript.corrections.diff import kept_tokens, longest_increasing
from app.transcript.corrections.matching import tokens_of

TOKENS = st.lists(st.sampled_from("abc"), max_size=40)


def check(old: Sequence[str], new: Sequence[str], kept: Sequence[int]) -> int:
    """How many tokens are kept, if all of them are equal and in order."""
    assert len(kept) == len(new)
    pairs = [(was, token) for was, token in zip(kept, new, strict=True) if was >= 0]
    assert all(old[was] == token for was, token in pairs)
    assert all(before[0] < after[0] for before, after in pairwise(pairs))
    return len(pairs)


def longest_common(old: Sequence[str], new: Sequence[str]) -> int:
    """The length of the longest common subsequence, by the definition."""
    row = [0] * (len(new) + 1)
    for token in old:
        before = row
        row = [0]
        for at, other in enumerate(new):
            row.append(before[at] + 1 if token == other else max(row[at], before[at + 1]))
    return row[-1]


@given(TOKENS, TOKENS)
def test_as_many_tokens_as_possible_are_kept(old: list[str], new: list[str]) -> None:
    assert check(old, new, kept_tokens(old, new)) == longest_common(old, new)


@given(TOKENS, TOKENS, st.integers(1, 8), st.integers(0, 100))
def test_texts_that_are_cut_keep_equal_tokens_in_order(
    old: list[str], new: list[str], window: int, most_pairs: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diff, "_WINDOW", window)
        patch.setattr(diff, "_MOST_PAIRS", max(most_pairs, window * window))
        kept = kept_tokens(old, new)
        assert check(old, new, kept) <= longest_common(old, new)
        assert kept_tokens(old, old) == list(range(len(old)))


def test_long_texts_keep_all_that_stays() -> None:
    """Twice 30,000 tokens are more than are compared at once: unique ones, and windows between them."""
    old = [f"w{n % 7}" if n % 501 else f"unique{n}" for n in range(30_000)]
    new = [token if n % 10 else f"new{n}" for n, token in enumerate(old)]
    assert check(old, new, kept_tokens(old, new)) == 27_000
    moved = [*[f"more{n}" for n in range(5000)], *new]
    assert check(old, moved, kept_tokens(old, moved)) >= 26_000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["no"] * 60_000, ["no"] * 50_000 + ["yes"] + ["no"] * 9000),
        ([f"a{n}" for n in range(50_000)], [f"b{n}" for n in range(50_000)]),
        ([f"a{n}" for n in range(50_000)], [f"a{n}" for n in range(50_000)][::-1]),
        (["a", "b"] * 30_000, ["b", "c"] * 30_000),
        (["a"] * 3, ["b", "a"] * 100_000),
    ],
)
@pytest.mark.timeout(60)  # a quadratic case would take hours, and gigabytes
def test_no_texts_take_long(old: list[str], new: list[str]) -> None:
    check(old, new, kept_tokens(old, new))


@given(st.lists(st.integers(0, 30), unique=True, max_size=12))
def test_longest_increasing(numbers: list[int]) -> None:
    places = longest_increasing(numbers)
    chain = [numbers[place] for place in places]
    assert places == sorted(places)
    assert chain == sorted(chain)
    assert len(chain) == longest_common([str(n) for n in numbers], [str(n) for n in sorted(numbers)])


@given(st.text())
def test_tokens_make_up_the_text(text: str) -> None:
    assert "".join(tokens_of(text)) == text.rstrip()
    assert all(len(token.split()) == 1 for token in tokens_of(text))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (" It's late, ok", [" It's", " late,", " ok"]),
        ("今日はGPT です。", ["今", "日", "は", "GPT", " で", "す", "。"]),
        ("น้ำ ดี", ["น้", "ำ", " ดี"]),
        (" 안녕 하세요", [" 안녕", " 하세요"]),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert tokens_of(text) == tokens
