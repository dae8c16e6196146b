"""Local agreement of drafts."""

from hypothesis import given
from hypothesis import strategies as st

from app.live.agreement import FIRST_SAMPLES, LATER_SAMPLES, Agreement, rest_of, split_words, words_behind

words = st.lists(st.sampled_from(["a", "the", "cat", "Cat.", "sat", "猫", "が", "..."]), max_size=12)


def agree(*drafts: str, apart: int = LATER_SAMPLES) -> list[str]:
    """What is certain after each draft. Each has `apart` samples that the one before has not."""
    agreement = Agreement()
    return [
        "".join(agreement.add(draft, number * apart, number * apart)) for number, draft in enumerate(drafts)
    ]


def test_a_word_is_certain_once_a_draft_has_it_that_covers_enough_more() -> None:
    assert agree(" The cat", " The cat sat", " The cat sat on", " The cat sat on the mat.") == [
        "",
        " The cat",
        " sat",
        " on",
    ]


def test_all_drafts_between_have_to_agree() -> None:
    drafts = [" a friend", *[" a friend is"] * 5]
    assert agree(*drafts, apart=LATER_SAMPLES // 4) == ["", "", " a friend", "", "", " is"]
    drafts = [" a friend", " a river", *[" a friend is"] * 5]
    assert agree(*drafts, apart=LATER_SAMPLES // 4) == ["", "", " a", "", "", "", " friend is"]


def test_the_first_words_need_less_audio_than_those_that_follow() -> None:
    drafts = [" a friend", " a friend is", *[" a friend is here"] * 4]
    assert agree(*drafts, apart=FIRST_SAMPLES) == ["", " a friend", "", "", " is", " here"]


def test_case_and_punctuation_do_not_matter_and_the_newer_ones_count() -> None:
    assert agree(" the cat. And", " The cat, and") == ["", " The cat, and"]


def test_punctuation_comes_with_the_word_that_follows_it() -> None:
    stop = " They sold the."
    assert agree(
        stop, stop, stop, " They sold the dog.", " They sold the dog. And", " They sold the dog, and"
    ) == [
        "",
        " They sold the",
        "",
        "",
        " dog",
        ", and",
    ]
    assert agree(" So -", " So -", " So - no") == ["", " So", ""]
    assert agree("今日は。", "今日は。", "今日は、天気", "今日は、天気") == ["", "今日は", "", "、天気"]


def test_words_that_changed_are_not_sent_again() -> None:
    assert agree(" I see a whale", " I see a whale", " I sea a whale and", " I sea a whale and a fin") == [
        "",
        " I see a whale",
        "",
        " and",
    ]
    # One word more before: what follows is still sent once.
    assert (
        agree(" you see whales", " you see whales", " Oh you see whales and", " Oh you see whales and fins")[
            -1
        ]
        == " and"
    )


def test_a_certain_word_that_drafts_spell_in_two_ways_does_not_hold_up_what_follows() -> None:
    sure = " Mr. Bennet", " Mr. Bennet said"
    assert agree(
        *sure, " Mr. Bennett said his", " Mr. Bennet said his lady", " Mr. Bennett said his lady to"
    ) == [
        "",
        " Mr. Bennet",
        " said",
        " his",
        " lady",
    ]


def test_words_at_the_end_of_the_clip_before_are_not_sent_again() -> None:
    agreed = split_words(" four scores and seven years ago our fathers")
    sent = words_behind(" Four score and seven years ago", agreed)
    assert sent == [" our", " fathers"]
    agreement = Agreement()
    agreement.add(" our farthest brought", 0, 0)
    assert agreement.add(" our fathers brought forth", LATER_SAMPLES, 0) == [" our"]
    agreement.continue_after(sent)
    assert agreement.words == [" our", " fathers"]
    assert agreement.add(" our fathers brought forth a", 2 * LATER_SAMPLES, 0) == [" brought", " forth"]


def test_scripts_without_spaces_agree_by_characters() -> None:
    assert agree("今日は", "今日は天", "今日は天気") == ["", "今日は", "天"]


@given(st.lists(st.text(max_size=30), max_size=6))
def test_nothing_is_sent_that_the_latest_draft_does_not_say(drafts: list[str]) -> None:
    agreement = Agreement()
    for number, draft in enumerate(drafts):
        certain = agreement.add(draft, number * LATER_SAMPLES, 0)
        assert "".join(certain) in draft


@given(words, words)
def test_the_rest_completes_what_was_sent(sent: list[str], more: list[str]) -> None:
    agreement = Agreement()
    for until in (0, LATER_SAMPLES):
        agreed = agreement.add(" ".join(["", *sent]), until, 0)
    rest = rest_of(agreed, " ".join(["", *sent, *more]))
    assert rest is not None
    assert "".join(agreed) + rest == " ".join(["", *sent, *more])


@given(st.lists(st.sampled_from(["a", "the", "Cat,", "cat.", "-", "♪", "$.", "..."]), max_size=8))
def test_what_growing_drafts_agree_on_begins_the_text(said: list[str]) -> None:
    agreement = Agreement()
    for count in range(2 * len(said) + 2):
        draft = " ".join(["", *said[: count // 2]]) + "."
        agreement.add(draft, count * LATER_SAMPLES, 0)
    rest = rest_of(agreement.words, draft)
    assert rest is not None
    assert "".join(agreement.words) + rest == draft


def test_there_is_no_rest_of_another_text() -> None:
    assert rest_of([" The", " cat"], " A cat sat") is None
    assert rest_of([" The", " cat"], " The") is None
