"""The language of each stretch of a clip, and the windows that end where it changes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engines.window_request import WindowRequest
from app.recording.clip_decoding import ClipRequest
from app.recording.spoken_languages import decisive_probs, find_runs, stretches_of
from app.transcript.timeline import ClipResult
from tests.recording.test_clip_decoding import PCM, START, decode, samples, segment, span_of, window_result
from workers.messages import SAMPLE_RATE, DecodingOptions, LanguageProbs, Span, WindowResult

LANGUAGES = ("de", "en", "es", "fr", "gl", "la", "ru", "uk")


def probs(**found: float) -> LanguageProbs:
    return tuple(found.items())


def spans(*lengths: float, pause: float = 0.5) -> tuple[Span, ...]:
    """Stretches of so many seconds."""
    found, at = [], samples(0.3)
    for length in lengths:
        found.append((at, at + samples(length)))
        at += samples(length + pause)
    return tuple(found)


def languages(stretches: Sequence[Span], own: str, *found: LanguageProbs, **more: object) -> list[str]:
    return [run.language for run in find_runs(stretches, found, own, **more)]  # type: ignore[arg-type]


def test_a_sentence_alone_and_its_neighbours_both_say_its_language() -> None:
    stretches = spans(6, 4, 6)
    spanish, doubtful = probs(es=0.97), decisive_probs(probs(es=0.9), probs(fr=0.5, es=0.4))
    assert languages(stretches, "es", spanish, doubtful, spanish) == ["es"]
    surely_french = decisive_probs(probs(fr=0.6, es=0.3), probs(fr=0.99))
    assert languages(stretches, "es", spanish, surely_french, spanish) == ["es", "fr", "es"]


def test_pauses_divide_speech_into_stretches() -> None:
    speech = [(0, 100), (100 + samples(0.1), 8000), (8000 + samples(0.2), 9000)]
    assert stretches_of(speech) == ((0, 8000), (8000 + samples(0.2), 9000))


def test_a_language_that_is_clearly_spoken_counts() -> None:
    found = [probs(en=0.95), probs(fr=0.9, en=0.05), probs(en=0.95)]
    assert languages(spans(5, 3, 5), "en", *found) == ["en", "fr", "en"]


@pytest.mark.parametrize("length", [1.2, 1.9])
def test_less_than_two_seconds_in_another_language_do_not_count(length: float) -> None:
    assert languages(spans(5, length, 5), "en", probs(en=0.95), probs(fr=1.0), probs(en=0.95)) == ["en"]


def test_a_doubtful_stretch_follows_the_surer_ones_around_it() -> None:
    found = [probs(fr=0.95), probs(en=0.4, fr=0.3), (), probs(fr=0.95)]
    assert languages(spans(4, 1.2, 0.4, 4), "en", *found) == ["fr"]
    assert languages(spans(1.2), "en", probs(fr=0.5, de=0.3)) == ["en"]


@pytest.mark.parametrize(("own", "near"), [("es", "gl"), ("no", "da"), ("uk", "ru"), ("it", "la")])
def test_languages_that_the_model_confuses_do_not_change(own: str, near: str) -> None:
    sure = ((own, 0.95),)
    assert languages(spans(5, 5, 5), own, sure, ((near, 0.9), (own, 0.1)), sure) == [own]


def test_of_near_languages_the_likeliest_one_is_spoken() -> None:
    found = [probs(en=0.9), probs(ru=0.5, uk=0.4), probs(uk=0.3, ru=0.6)]
    assert languages(spans(5, 4, 4), "en", *found) == ["en", "ru"]


def test_a_client_may_expect_latin() -> None:
    sermon = probs(la=0.9, it=0.05)
    assert languages(spans(5), "en", sermon) == ["en"]
    assert languages(spans(5), "en", sermon, languages=("en", "la")) == ["la"]


stretches = st.lists(
    st.tuples(st.floats(0.25, 12), st.dictionaries(st.sampled_from(LANGUAGES), st.floats(0, 1), max_size=4)),
    min_size=1,
    max_size=8,
)


@given(stretches, st.sampled_from(LANGUAGES), st.floats(0.2, 4))
def test_runs_divide_all_stretches_in_pauses(
    clip: list[tuple[float, dict[str, float]]], own: str, pause: float
) -> None:
    speech = spans(*(length for length, _ in clip), pause=pause)
    found = [tuple(by_language.items()) for _, by_language in clip]
    runs = find_runs(speech, found, own)
    assert runs == find_runs(speech, [tuple(reversed(each)) for each in found], own)
    for before, after in pairwise(runs):
        assert before.language != after.language
        assert before.end <= after.start
    for start, end in speech:
        assert sum(run.start <= start and end <= run.end for run in runs) == 1
    spoken = Counter[str]()
    for run in runs:
        spoken[run.language] += sum(
            end - start for start, end in speech if run.start <= start and end <= run.end
        )
    assert all(name == own or samples >= 2 * SAMPLE_RATE for name, samples in spoken.items())


def clip_with(*lengths: float) -> ClipRequest:
    speech = tuple((START + start, START + end) for start, end in spans(*lengths))
    end = speech[-1][1] + samples(0.3)
    return ClipRequest(
        PCM, START, end, speech, DecodingOptions("base"), late_language=lambda: "en", detect_changes=True
    )


class Interpreter:
    """A decoder of people who speak one language after the other: from which second on, in order."""

    def __init__(self, *spoken: tuple[float, str], own: str = "en", is_sure: bool = True) -> None:
        self._spoken, self._own, self._is_sure = spoken, own, is_sure

    def language_at(self, position: int) -> str:
        at = (position - START) / SAMPLE_RATE
        return [language for start, language in self._spoken if start <= at][-1]

    def __call__(self, window: WindowRequest) -> WindowResult:
        of_stretches = tuple(((self.language_at(start), 0.9),) for start, _ in window.stretches)
        if window.decoding.language_only:
            assert window.decoding.context_s == 5
            assert window.for_worker().decoding.language is None, "the elected one says nothing of a stretch"
            assert window.end - window.start <= 4 * SAMPLE_RATE
            spoken = self.language_at(window.start) if self._is_sure else self._own
            return window_result(language=spoken, language_probs=((spoken, 0.9),))
        language = window.decoding.language or self._own
        end = (window.end - window.start) / SAMPLE_RATE
        said = segment(0, end, f"{language} {window.start}")
        return window_result(said, language=language, stretch_probs=of_stretches)


def spoken_in(result: ClipResult) -> list[str | None]:
    return [each.language for each in result.segments]


def test_a_window_ends_where_the_language_changes() -> None:
    clip = clip_with(4, 5, 3)
    result, windows = decode(clip, Interpreter((0, "en"), (4.5, "fr"), (10, "de")))
    assert [window.decoding.language_only for window in windows] == [False, True, True, True, *[False] * 3]
    decoded = windows[4:]
    assert [window.decoding.language for window in decoded] == ["en", "fr", "de"]
    assert [span_of(window) for window in decoded] == [(0, 4.55), (4.55, 10.05), (10.05, 13.6)]
    assert all(window.continues for window in windows[1:])
    assert spoken_in(result) == ["en", "fr", "de"]
    assert result.language == "en", "the clip's own"
    assert [language for language, _ in result.language_probs] == ["fr", "en", "de"]
    assert sum(part for _, part in result.language_probs) == pytest.approx(1)


def test_a_clip_in_another_language_than_the_elected_one_is_decoded_in_it() -> None:
    result, windows = decode(clip_with(4, 5), Interpreter((0, "fr")))
    assert spoken_in(result) == ["fr"]
    assert span_of(windows[-1]) == span_of(windows[0])


def test_a_clip_in_one_language_is_decoded_as_any_other() -> None:
    clip = clip_with(4, 5, 3)
    plain, windows_of_plain = decode(replace(clip, detect_changes=False), Interpreter((0, "en")))
    result, windows = decode(clip, Interpreter((0, "en")))
    assert [replace(window, stretches=()) for window in windows] == windows_of_plain
    assert len(windows[0].stretches) == 3
    assert replace(result, segments=plain.segments) == plain
    assert spoken_in(result) == ["en"]


def test_a_change_counts_only_if_stretches_alone_confirm_it() -> None:
    result, windows = decode(
        clip_with(4, 2.1, 3), Interpreter((0, "en"), (4.5, "fr"), (7, "en"), is_sure=False)
    )
    assert [window.decoding.language_only for window in windows] == [False, True, True, True]
    assert spoken_in(result) == ["en"]


def test_a_model_that_knows_one_language_finds_no_other() -> None:
    def english_only(window: WindowRequest) -> WindowResult:
        return replace(Interpreter((0, "fr"))(window), stretch_probs=())

    result, windows = decode(clip_with(4, 5), english_only)
    assert (spoken_in(result), len(windows)) == (["en"], 1)
