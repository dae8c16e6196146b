"""What live streams are measured by."""

import pytest

from bench.live_scores import TimedWord, items_of, matches, scores, summary, taken_back

SPOKEN = [
    TimedWord("turn", 1.0, 1.3),
    TimedWord("on", 1.3, 1.5),
    TimedWord("the", 1.5, 1.6),
    TimedWord("light", 1.6, 2.0),
    TimedWord("yes", 4.0, 4.5),
]
NAME = "conversation.item.input_audio_transcription"


def word(text: str, start: float, end: float) -> dict[str, object]:
    return {"word": text, "start": start, "end": end}


EVENTS = [
    (0.1, {"type": "session.updated"}),
    (1.2, {"type": "input_audio_buffer.speech_started", "item_id": "a"}),
    (2.0, {"type": f"{NAME}.delta", "item_id": "a", "delta": "Turn of"}),
    (2.5, {"type": f"{NAME}.delta", "item_id": "a", "delta": " the"}),
    (2.6, {"type": "input_audio_buffer.speech_stopped", "item_id": "a"}),
    (4.2, {"type": "input_audio_buffer.speech_started", "item_id": "b"}),
    (
        3.0,
        {
            "type": f"{NAME}.completed",
            "item_id": "a",
            "transcript": "Turn on the light.",
            "words": [
                word("Turn", 1.0, 1.35),
                word(" on", 1.35, 1.5),
                word(" the", 1.5, 1.6),
                word(" light.", 1.6, 2.2),
            ],
        },
    ),
    (5.0, {"type": "input_audio_buffer.committed", "item_id": "b"}),
    (5.5, {"type": f"{NAME}.completed", "item_id": "b", "transcript": "Yes."}),
]


def test_delays_count_from_the_end_of_the_words() -> None:
    found = scores(items_of(EVENTS), SPOKEN, "Turn on the light. Yes.", "turn on the lights yes")
    assert found["first_s"] == pytest.approx([2.0 - 1.3, 5.5 - 4.5]), "without deltas, the text is the first"
    assert found["words_s"] == pytest.approx([2.0 - 1.3, 2.5 - 1.6]), "a wrong word was never spoken"
    assert found["final_s"] == pytest.approx([0.4, 0.5])
    assert (found["agreed"], found["taken_back"]) == (3, 1)
    assert (found["errors"], found["upload_errors"], found["truth_words"]) == (1, 1, 5)
    assert sorted(found["times_s"]) == pytest.approx([0, 0, 0, 0, 0, 0.05, 0.05, 0.2])


def test_a_summary_has_all_streams() -> None:
    one = scores(items_of(EVENTS), SPOKEN, "Turn on the light. Yes.", None)
    found = summary([one, one])
    assert (found["turns"], found["without_text"]) == (4, 0)
    assert found["taken_back_percent"] == pytest.approx(33.3)
    assert (found["wer_percent"], found["times_off_percent"]) == (0, 12.5)
    assert found["first_s"] == [0.85, 1.0]
    assert summary([scores([], SPOKEN, "", None)])["first_s"] == [None, None]


def test_a_turn_without_a_text_is_lost() -> None:
    found = scores(items_of(EVENTS[:6]), SPOKEN, "Turn on the light. Yes.", None)
    assert found["incomplete"] == 2
    assert found["errors"] == 5


def test_words_are_taken_back_if_others_stand_in_their_place() -> None:
    item = items_of(EVENTS)[0]
    item.deltas = [(1.0, "light the Turn on")]
    assert taken_back(item) == 2
    assert list(matches(["a", "b"], ["x", "a", "b"])) == [(0, 1), (1, 2)]
