"""The spaces before the texts of a window, which some models do not write."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engines.model_files import DEMO_PATH
from tests.workers.whisper.test_faulty_models import loaded
from tests.workers.whisper.windows import window
from workers.messages import WindowResult, WorkerInfo
from workers.whisper import worker as whisper
from workers.whisper.results import leading_spaces

__all__ = ["loaded"]


def spaced(texts: list[str], language: str = "en") -> list[str]:
    return [space + text for space, text in zip(leading_spaces(texts, language), texts, strict=True)]


@pytest.mark.parametrize(
    ("texts", "language", "expected"),
    [
        (["It rains on the beach.", "It", "stops."], "en", " It rains on the beach. It stops."),
        ([" On the beach.", "It rains.", " It stops."], "en", " On the beach. It rains. It stops."),
        ([" Twenty", "-five,", " or thirty."], "en", " Twenty-five, or thirty."),
        (["Twenty", "-five", "’s"], "en", " Twenty-five’s"),
        (["Wait", "...", "and see", "?", '" he said.'], "en", ' Wait... and see?" he said.'),
        (["Wait.", "...and", '"No."', "-Yes.", "(Go.)"], "en", ' Wait. ...and "No." -Yes. (Go.)'),
        (["Él vino.", "¿Quién?", "»Nein.«", "♪"], "es", " Él vino. ¿Quién? »Nein.« ♪"),
        (["e", "\u0301t"], "fr", " e\u0301t"),
        (["오늘", "내일"], "ko", " 오늘 내일"),
        (["我来了。", "iPhone", "2023年"], "zh", "我来了。iPhone2023年"),
        (["我来了。", "好"], "en", "我来了。好"),
        (["今日は", "良い"], "ja", "今日は良い"),
        (["วันนี้", "ดี"], "th", "วันนี้ดี"),
        (["", " a", ""], "en", " a"),
    ],
)  # fmt: skip
def test_texts_are_joined_as_people_write(texts: list[str], language: str, expected: str) -> None:
    assert "".join(spaced(texts, language)) == expected


words = st.text("aZé7Жش한", min_size=1, max_size=3)


@given(
    st.lists(st.tuples(st.sampled_from(["", " "]), words, st.sampled_from(["", ".", ",", "?”"])), max_size=6)
)
def test_texts_that_begin_with_a_space_stay_and_all_others_get_one_once(parts: list[tuple[str, ...]]) -> None:
    texts = ["".join(part) for part in parts]
    found = spaced(texts)
    assert spaced(found) == found
    assert [text.lstrip() for text in found] == [text.lstrip() for text in texts]
    if all(text[0] == " " for text in texts):
        assert found == texts
    if not any(text[0] == " " for text in texts):
        assert "".join(found).split() == texts
    assert spaced(texts, "zh") == texts


def test_a_model_that_writes_no_space_gives_the_same_texts_and_words(demo: WorkerInfo, loaded: Any) -> None:
    vocabulary = json.loads((DEMO_PATH / "vocabulary.json").read_text("utf-8"))
    unspaced = {
        place: vocabulary.index(token[1:])
        for place, token in enumerate(vocabulary)
        if token.startswith("Ġ") and token[1:] in vocabulary
    }
    first_timestamp = vocabulary.index("<|0.00|>")
    dropped = []

    def generate(own: Any, *args: Any, **kwargs: Any) -> list[Any]:
        results = []
        for one in own(*args, **kwargs):
            tokens = list(one.sequences_ids[0])
            for place in range(1, len(tokens)):
                if tokens[place - 1] >= first_timestamp and tokens[place] in unspaced:
                    tokens[place] = unspaced[tokens[place]]
                    dropped.append(place)
            results.append(
                SimpleNamespace(sequences_ids=[tokens], scores=one.scores, no_speech_prob=one.no_speech_prob)
            )
        return results

    def said(result: WindowResult) -> list[tuple[str, list[str]]]:
        segments = [*result.segments, *filter(None, [result.tail])]
        return [(segment.text, [word.text for word in segment.words]) for segment in segments]

    talk = window("talk", 12, word_timestamps=True)
    [expected] = whisper.decode([talk])
    loaded(generate=generate)
    [result] = whisper.decode([talk])
    assert len(dropped) > 1
    assert said(result) == said(expected)
