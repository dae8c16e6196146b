"""The tokens of text that no model decoded."""

from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tokenizers import Tokenizer

from app.engines import text_tokens
from app.engines.model_files import DEMO, DEMO_PATH
from app.engines.text_tokens import with_tokens
from workers.messages import SAMPLE_RATE, Segment

SEGMENT = Segment(
    SAMPLE_RATE, 4 * SAMPLE_RATE, " The captain reads.", (), 0.0, -0.1, 1.0, 0.0
)  # three seconds


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(DEMO_PATH / "tokenizer.json"))


def test_tokens_are_the_text_between_its_times(tokenizer: Tokenizer) -> None:
    [segment] = with_tokens([SEGMENT], DEMO)
    first, *text, last = segment.tokens
    assert (first, last) == (
        tokenizer.token_to_id("<|notimestamps|>") + 1,
        tokenizer.token_to_id("<|notimestamps|>") + 1 + 150,
    )
    assert tokenizer.decode(text) == SEGMENT.text
    assert replace(segment, tokens=()) == SEGMENT


def test_the_last_timestamp_is_that_of_thirty_seconds(tokenizer: Tokenizer) -> None:
    [segment] = with_tokens([replace(SEGMENT, end=90 * SAMPLE_RATE)], DEMO)
    assert segment.tokens[-1] - segment.tokens[0] == 1500


def test_text_that_spells_control_tokens(tokenizer: Tokenizer) -> None:
    [segment] = with_tokens([replace(SEGMENT, text=" <|en|><|0.00|>Hi<|endoftext|>")], DEMO)
    assert all(token < tokenizer.token_to_id("<|endoftext|>") for token in segment.tokens[1:-1])
    assert tokenizer.decode(segment.tokens[1:-1]).strip().endswith("Hi")


def test_tokens_of_the_model_stay_and_nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_tokens, "_load", None)
    segments = [replace(SEGMENT, tokens=(1, 2, 3))] * 2
    assert list(with_tokens(segments, DEMO)) == segments


@pytest.mark.parametrize("content", [None, "", "{}", '{"model": {"type": "BPE", "vocab": {}, "merges": []}}'])
def test_without_a_tokenizer_there_are_no_tokens(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with capture_logs() as logs:
        assert list(with_tokens([SEGMENT, SEGMENT], str(tmp_path))) == [SEGMENT, SEGMENT]
    assert len(logs) == 1


def test_a_model_that_is_not_here() -> None:
    assert list(with_tokens([SEGMENT], "nobody/nothing")) == [SEGMENT]
