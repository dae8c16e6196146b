"""Corrections: what people change changes, and all else keeps its times."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, count, pairwise
from typing import Any

import pytest
from correction_cases import CLIPS, RECORDING, SPOKEN, bases, edited, edits_of, is_valid
from hypothesis import assume, given
from hypothesis import strategies as st
from transcript_cases import raw_segment, samples, segment, spoken

from app.common.errors import InvalidInput, TooLarge
from app.transcript.corrections import MAX_SEGMENTS, Correction, SegmentEdit, correct
from app.transcript.corrections.edits import placed_edits
from app.transcript.edited import EditedSegment, with_ids
from app.transcript.formats.common import milliseconds
from app.transcript.text.scripts import width
from tests.cases import read_cases
from workers.messages import MAX_LISTED_SPEAKERS, SAMPLE_RATE, Segment, Word

BY_A_PERSON = 1.0
CASES = read_cases("corrections")


def transcript(*segments: Segment) -> tuple[EditedSegment, ...]:
    return tuple(with_ids(segments, CLIPS))


def corrected(base: Sequence[EditedSegment], edits: Sequence[SegmentEdit], revision: int = 1) -> Correction:
    return correct(base, edits, revision, RECORDING, CLIPS)


def retexted(base: Sequence[EditedSegment], *texts: str) -> tuple[EditedSegment, ...]:
    """The base with other texts."""
    edits = [replace(edit, text=text) for edit, text in zip(edits_of(base), texts, strict=True)]
    return corrected(base, edits).segments


def words(part: EditedSegment) -> str:
    """The words with their times in seconds; those of a person have a star."""
    return " ".join(
        f"{word.text.strip()}{'*' * (word.probability == BY_A_PERSON)}"
        f" {round(word.start / SAMPLE_RATE, 3):g}-{round(word.end / SAMPLE_RATE, 3):g}"
        for word in part.words
    )


DOG_AND_CAT = transcript(spoken(1, 3, "I see the dog"), spoken(3, 5, "The cat sat down"))


def test_a_changed_word_takes_the_time_between_its_neighbours() -> None:
    first, second = retexted(DOG_AND_CAT, "I saw the dog", "The cat sat down")
    assert words(first) == "I 1-1.5 saw* 1.5-2 the 2-2.5 dog 2.5-3"
    assert (first.text, first.tokens, first.id, first.timed_by_hand) == (" I saw the dog", (), "0-0", False)
    assert second is DOG_AND_CAT[1] or second == DOG_AND_CAT[1]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_words_of_corrected_texts(case: dict[str, Any]) -> None:
    base = transcript(
        *(segment(*row[:3], *row[3]) if len(row) > 3 else spoken(*row) for row in case["segments"])
    )
    assert [words(part) for part in retexted(base, *case["texts"])] == case["words"]


def test_split_segments_keep_their_words() -> None:
    (base,) = transcript(replace(spoken(1, 3, "I see the dog"), language="en"))
    edits = [SegmentEdit(1000, 2100, "I see", base.id), SegmentEdit(2100, 3000, "the dog", base.id)]
    first, second = corrected([base], edits).segments
    assert (words(first), words(second)) == ("I 1-1.5 see 1.5-2", "the 2.1-2.5 dog 2.5-3")
    assert (first.id, second.id) == ("0-0", "0-r1-0")
    assert (first.text, second.text) == (" I see", " the dog")
    assert (first.language, second.language) == ("en", "en")
    assert first.timed_by_hand
    assert second.timed_by_hand


def test_joined_segments_keep_their_words() -> None:
    edits = [SegmentEdit(1000, 5000, "I see the dog. The cat sat down", "0-0")]
    result = corrected(DOG_AND_CAT, edits)
    (joined,) = result.segments
    assert words(joined) == (
        "I 1-1.5 see 1.5-2 the 2-2.5 dog.* 2.5-3 The 3-3.5 cat 3.5-4 sat 4-4.5 down 4.5-5"
    )
    assert result.changed == 2


def test_a_join_with_a_changed_word_keeps_the_others_though_both_end_alike() -> None:
    base = transcript(spoken(0, 2, "over in the"), spoken(2, 4, "house in the"))
    (joined,) = corrected(base, [SegmentEdit(0, 4000, "over at the house in the", "0-0")]).segments
    assert [word.probability for word in joined.words] == [0.9, 1.0, 0.9, 0.9, 0.9, 0.9]


def test_times_set_by_hand_stay_exactly() -> None:
    edits = edits_of(DOG_AND_CAT)
    edits[0] = replace(edits[0], start_ms=1234, end_ms=2777)
    first, second = corrected(DOG_AND_CAT, edits).segments
    assert (first.start, first.end, first.timed_by_hand) == (1234 * 16, 2777 * 16, True)
    assert words(first) == "I 1.234-1.5 see 1.5-2 the 2-2.5 dog 2.5-2.777"
    assert first.tokens == DOG_AND_CAT[0].tokens
    assert second == DOG_AND_CAT[1]
    again = corrected((first, second), edits_of((first, second)), revision=2)
    assert again == Correction((first, second), 0)
    back = [replace(edits[0], start_ms=1000, end_ms=3000), edits[1]]
    assert corrected((first, second), back, revision=2).segments[0].timed_by_hand


def test_a_time_that_agrees_to_the_millisecond_is_the_bases() -> None:
    base = transcript(replace(spoken(1, 3, "one two"), start=16_003, end=47_995))
    edits = [replace(edits_of(base)[0], text="one too")]
    (part,) = corrected(base, edits).segments
    assert (part.start, part.end, part.timed_by_hand) == (16_003, 47_995, False)


def test_a_segment_may_end_with_the_last_part_of_a_millisecond() -> None:
    last_ms = -(-RECORDING // 16)
    (part,) = corrected((), [SegmentEdit(0, last_ms, "all")]).segments
    assert (part.start, part.end) == (0, RECORDING)


def test_new_segments_get_ids_scores_and_spaces() -> None:
    base = transcript(
        replace(spoken(1, 3, "I see the dog"), avg_logprob=-0.1),
        replace(spoken(31, 33, "The cat sat down"), avg_logprob=-0.7),
    )
    edits = [
        *edits_of(base)[:1],
        SegmentEdit(4000, 5000, " Hello there ", speaker="S1"),
        SegmentEdit(30_500, 30_900, "The cat", id="never given"),
        SegmentEdit(30_950, 33_000, "sat down", base[1].id),
    ]
    first, hello, cat, _ = corrected(base, edits, revision=7).segments
    assert first == base[0]
    assert (hello.id, hello.text, hello.speaker, hello.tokens) == ("0-r7-0", " Hello there", "S1", ())
    assert [word.text for word in hello.words] == [" Hello", " there"]
    assert hello.avg_logprob == -0.1  # the nearest one's
    assert cat.id == "480000-r7-1"
    assert cat.avg_logprob == -0.7  # where its words come from


def test_nothing_is_known_about_a_segment_of_an_empty_transcript() -> None:
    (part,) = corrected((), [SegmentEdit(40_000, 41_000, "Hello")]).segments
    assert (part.id, part.text, part.words, part.timed_by_hand) == ("480000-r1-0", " Hello", (), True)


def test_no_words_are_made_up_for_a_model_that_has_none() -> None:
    base = transcript(segment(1, 3, " I see the dog"))
    assert retexted(base, "I saw the dog")[0].words == ()


def test_removed_added_and_different_segments_count() -> None:
    edits = edits_of(DOG_AND_CAT)
    assert corrected(DOG_AND_CAT, []).changed == 2
    assert corrected(DOG_AND_CAT, [*edits, SegmentEdit(6000, 7000, "more")]).changed == 1
    assert corrected(DOG_AND_CAT, [replace(edits[0], speaker="S1"), edits[1]]).changed == 1
    assert corrected(DOG_AND_CAT, [replace(edits[0], text="  I see the dog\n"), edits[1]]).changed == 0


def test_segments_of_two_speakers_may_overlap() -> None:
    edits = [replace(edits_of(DOG_AND_CAT)[0], end_ms=4000), replace(edits_of(DOG_AND_CAT)[1], speaker="S2")]
    first, second = corrected(DOG_AND_CAT, edits).segments
    assert (first.end, second.start) == (samples(4), samples(3))


def test_no_part_of_a_millisecond_overlaps() -> None:
    base = transcript(replace(spoken(1, 2, "one"), end=32_003), replace(spoken(2, 3, "two"), start=32_003))
    edits = edits_of(base)
    edits[0] = replace(edits[0], start_ms=500, end_ms=2000)
    first, second = corrected(base, edits).segments
    assert (first.start, first.end, second.start) == (8000, 32_000, 32_003) or first.end <= second.start
    later = replace(base[1], start=31_995)
    first, second = corrected((base[0], later), [SegmentEdit(500, 2000, "one"), edits[1]]).segments
    assert first.end == second.start == 31_995


def test_a_new_segment_follows_one_that_ends_within_its_first_millisecond() -> None:
    base = transcript(replace(spoken(0, 1, "one"), start=1, end=2))
    first, second = corrected(base, [*edits_of(base), SegmentEdit(0, 700, "new")]).segments
    assert (first.start, first.end, second.start, second.end) == (1, 2, 2, 11_200)


ONE = SegmentEdit(1000, 2000, "one")


@pytest.mark.parametrize(
    ("edits", "index", "message"),
    [
        ([ONE, SegmentEdit(500, 600, "two")], 1, "segments[1] starts at 500 ms, not at 1000 ms"),
        ([SegmentEdit(1000, 1000, "one")], 0, "segments[0] starts at 1000 ms and ends at 1000 ms"),
        ([SegmentEdit(-1, 1000, "one")], 0, "segments[0] lasts from -1 ms to 1000 ms"),
        ([ONE, SegmentEdit(2000, 90_002, "two")], 1, "and the recording from 0 to 90001 ms"),
        ([ONE, SegmentEdit(95_000, 96_000, "two")], 1, "Give it times inside the recording"),
        ([ONE, SegmentEdit(1999, 3000, "two")], 1, "before segments[0] of the same speaker ends at 2000 ms"),
        (
            [ONE, SegmentEdit(1100, 1200, "two", speaker="S1"), SegmentEdit(1900, 3000, "three")],
            2,
            "before segments[0] of the same speaker",
        ),
        ([ONE, SegmentEdit(2000, 3000, " \n\t")], 1, "segments[1] has no text"),
        ([ONE, SegmentEdit(2000, 3000, "\ud800")], 1, "half a character"),
    ],
)
def test_bad_segments_are_refused_with_their_index(
    edits: list[SegmentEdit], index: int, message: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        corrected((), edits)
    assert refused.value.param == f"segments[{index}]"
    assert message in refused.value.message
    assert refused.value.message.endswith(".")


SHORT = 7 * SAMPLE_RATE // 2
DAY = 86_400 * SAMPLE_RATE


def described(*texts: str) -> list[SegmentEdit]:
    """Segments of a millisecond each."""
    return [SegmentEdit(at, at + 1, text) for at, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("samples", "texts", "limit"),
    [
        (SHORT, ["a"] * 2_071, "2,071 segments, and may have 2,070 for 3.5 s"),
        (SHORT, ["word " * 1500] * 14, "105,000 characters, and may have 100,350"),
        (SHORT, ["a b " * 2000] * 6, "24,000 words"),
        (SHORT, ["漢" * 5000] * 5, "25,000 words (in scripts without spaces: characters)"),
        (DAY, ["a"] * (MAX_SEGMENTS + 1), "100,001 segments, and may have 100,000"),
        (DAY, ["a " * 4000] * 151, "604,000 words"),
    ],
)
def test_a_recording_has_as_much_text_as_fits_its_length(samples: int, texts: list[str], limit: str) -> None:
    with pytest.raises(TooLarge) as refused:
        placed_edits((), described(*texts), samples)
    assert limit in refused.value.message
    assert refused.value.param == "segments"


@pytest.mark.parametrize(
    ("samples", "texts"),
    [
        (SHORT, ["A long description of what is seen. " * 250] * 11),
        (SHORT, ["漢字" * 5000] * 2),
        (DAY, ["word " * 2000] * 180),  # 250 a minute, all day and night
        (DAY, ["漢" * 7000] * 80),  # six a second
    ],
)
def test_no_description_and_no_translation_is_too_long(samples: int, texts: list[str]) -> None:
    assert len(placed_edits((), described(*texts), samples)) == len(texts)


def test_a_transcript_has_as_many_speakers_as_a_job_may_list() -> None:
    crowd = [
        SegmentEdit(start, start + 1, "Yes.", speaker=f"S{start}") for start in range(MAX_LISTED_SPEAKERS + 1)
    ]
    assert placed_edits((), crowd[1:], SHORT)
    with pytest.raises(TooLarge, match="251 speakers, and may have 250"):
        placed_edits((), crowd, SHORT)
    base = transcript(*(spoken(second, second + 1, "Yes") for second in range(MAX_LISTED_SPEAKERS + 1)))
    older = [replace(each, speaker=f"S{place}") for place, each in enumerate(base)]
    assert placed_edits(older, edits_of(older), DAY), "those of an older version may stay"


def test_a_text_that_was_longer_may_stay_so() -> None:
    long = transcript(spoken(0, 3, "it " * 25_000))
    [edit] = edits_of(long)
    assert placed_edits(long, [replace(edit, text=edit.text.replace("it", "es"))], SHORT)
    with pytest.raises(TooLarge, match=r"25,001 words .* may have 25,000"):
        placed_edits(long, [replace(edit, text=edit.text + " more")], SHORT)


def test_parts_of_a_long_word_are_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Characters that no line may separate are one word, of which a correction may keep every other one."""
    measured = 0

    def measure(text: str) -> int:
        nonlocal measured
        measured += len(text)
        return width(text)

    monkeypatch.setattr("app.transcript.corrections.words.width", measure)
    steps = []
    for count_ in (1000, 2000):
        [base] = transcript(
            raw_segment(0, 3 * SAMPLE_RATE, "、" * count_, [Word("、" * count_, 0, 48_000, 1.0)])
        )
        measured = 0
        retexted((base,), "、漢" * count_)
        steps.append(measured)
    assert steps[1] < 2.5 * steps[0]


@given(bases())
def test_any_unedited_transcript_stays_as_it_is(base: tuple[EditedSegment, ...]) -> None:
    assert corrected(base, edits_of(base)) == Correction(base, 0)


NEW_TEXTS = st.one_of(
    st.sampled_from(["new", " words", "新しい", "ใหม่", "😀", "a b", "e\u0301", "the river,", "河水"]),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5).filter(str.strip),
)


@given(st.data())
def test_any_two_corrections_keep_the_rules(data: st.DataObject) -> None:
    base = data.draw(bases())
    ids = {part.id for part in base}
    for revision in (1, 2):
        edits = data.draw(edited(base, NEW_TEXTS))
        if not is_valid(edits, base):
            with pytest.raises(InvalidInput):
                corrected(base, edits, revision)
            return
        result = corrected(base, edits, revision)
        check(base, edits, result, ids)
        assert corrected(result.segments, edits_of(result.segments), 9) == Correction(result.segments, 0)
        ids |= {part.id for part in result.segments}
        base = result.segments


def check(
    base: Sequence[EditedSegment], edits: Sequence[SegmentEdit], result: Correction, given_ids: set[str]
) -> None:
    olds = {part.id: part for part in base}
    news = result.segments
    assert len({part.id for part in news}) == len(news) == len(edits)
    assert Counter(
        (milliseconds(part.start), milliseconds(part.end), part.text.strip(), part.speaker) for part in news
    ) == (Counter((edit.start_ms, edit.end_ms, edit.text.strip(), edit.speaker) for edit in edits))
    for part in news:
        old = olds.get(part.id)
        assert old or part.id not in given_ids
        is_moved = old is None or milliseconds(part.start) != milliseconds(old.start)
        is_moved |= old is None or milliseconds(part.end) != milliseconds(old.end)
        assert part.timed_by_hand == (is_moved or (old is not None and old.timed_by_hand))
        if old and (old.text, old.start, old.end, old.speaker) == (
            part.text,
            part.start,
            part.end,
            part.speaker,
        ):
            assert replace(part, marks=old.marks) == old
        if old and old.text == part.text:
            assert part.tokens == old.tokens
        else:
            assert part.tokens == ()
        assert 0 <= part.start < part.end <= RECORDING
        check_words(part)
        if not any(part.words for part in base):
            assert not part.words
    assert all(before.start <= after.start for before, after in pairwise(news))
    timed_as_before = {part.id for part in news if part.id in olds and times(part) == times(olds[part.id])}
    for before, after in combinations(news, 2):
        if before.speaker == after.speaker and not {before.id, after.id} <= timed_as_before:
            assert before.end <= after.start
    kept = {part.id for part in news} & olds.keys()
    different = sum(olds[part.id] != part for part in news if part.id in olds)
    assert result.changed == different + len(news) - len(kept) + len(olds) - len(kept)


def times(part: EditedSegment) -> tuple[int, int]:
    return part.start, part.end


def check_words(part: EditedSegment) -> None:
    if part.words:
        assert "".join(word.text for word in part.words) == part.text
        assert part.words[0].start >= part.start
        assert part.words[-1].end <= part.end
        assert all(word.text.strip() and word.start <= word.end for word in part.words)
        assert all(before.end <= after.start for before, after in pairwise(part.words))


@given(st.data(), st.booleans())
def test_unchanged_words_keep_their_times_whatever_happens_to_their_segments(
    data: st.DataObject, spaced: bool
) -> None:
    numbers = count()
    olds = st.builds(lambda: next(numbers)).map(lambda n: f" w{n}" if spaced else chr(0x4E00 + n))
    news = st.builds(lambda: next(numbers)).map(lambda n: f" new{n}" if spaced else chr(0x6E00 + n))
    base = data.draw(bases(olds))
    spoken_words = {word.text.strip(): word for part in base for word in part.words}
    assume(len(spoken_words) == sum(len(part.words) for part in base))
    edits = data.draw(edited(base, news))
    assume(is_valid(edits, base))
    for part in corrected(base, edits).segments:
        for word in part.words:
            old = spoken_words.get(word.text.strip())
            if old is None:
                assert word.probability == BY_A_PERSON
            elif old.end >= part.start - 5 * SAMPLE_RATE and old.start <= part.end + 5 * SAMPLE_RATE:
                expected = Word(word.text, clamped(old.start, part), clamped(old.end, part), SPOKEN)
                assert word == expected


def clamped(time: int, part: Segment) -> int:
    return min(max(time, part.start), part.end)


@pytest.mark.soak
@pytest.mark.timeout(600)  # a quadratic case would take days
@pytest.mark.parametrize("texts", [("no", "no"), ("no", "yes"), ("{}", "{}"), ("{}", "new{}")])
def test_as_many_segments_as_a_transcript_may_have(texts: tuple[str, str]) -> None:
    """With ids, then without: each with one word more than before."""
    before, after = (
        [
            " ".join([text.format(number) for number in range(3 * at, 3 * at + 3)])
            for at in range(MAX_SEGMENTS)
        ]
        for text in texts
    )
    base = transcript(*(spoken(at, at + 1, text) for at, text in enumerate(before)))
    edits = [replace(edit, text=f"more {text}") for edit, text in zip(edits_of(base), after, strict=True)]
    for each in (edits, [replace(edit, id=None) for edit in edits]):
        result = correct(base, each, 1, samples(MAX_SEGMENTS), ())
        assert [part.text for part in result.segments] == [f" more {text}" for text in after]
