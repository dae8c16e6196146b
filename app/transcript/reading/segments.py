"""The segments of a transcript: as a file lists them, or made from its words or text. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

from app.common.languages import known_code
from app.transcript.edited import edited
from app.transcript.reading.alignment import align, words_of_segments
from app.transcript.reading.fields import (
    as_object,
    name_field,
    not_a_transcript,
    samples_field,
    text_field,
)
from app.transcript.reading.words import (
    ReadWord,
    fill_times,
    fill_word_times,
    joined_words,
    read_words,
    with_spaces,
)
from app.transcript.text.breaks import ends_sentence
from workers.messages import SAMPLE_RATE, Segment, Span, Word


@dataclass(frozen=True, slots=True)
class _Draft:
    """A segment as the file has it. Times in samples, as far as they are known."""

    text: str
    start: int | None
    end: int | None
    words: list[ReadWord]
    speaker: str | None
    language: str | None


def listed_segments(
    listed: list[Any], whole_text: str, words: list[ReadWord], duration: int | None
) -> Iterator[Segment]:
    """The segments in `listed`, with their own words or, if none has any, with `words`. Empties `listed`.

    `whole_text`: the text of the transcript, if the file says it. `duration`: of the recording, in samples.
    """
    drafts = list(_drafts(listed))
    texts = [draft.text for draft in drafts]
    if "".join(texts).strip() != whole_text.strip():
        texts = list(with_spaces(texts, some_have_spaces=any(text[0].isspace() for text in texts)))
    spans = _spans(drafts, duration)
    assigned: Iterator[Sequence[ReadWord]] = (draft.words for draft in drafts)
    if words and not any(draft.words for draft in drafts):
        timed = fill_word_times(words, 0, max((end for _, end in spans), default=0))
        assigned = words_of_segments(zip(texts, spans, strict=True), timed)
    for draft, text, span, candidates in zip(drafts, texts, spans, assigned, strict=True):
        segment = new_segment(span, text, _aligned(text, span, candidates), draft.speaker)
        yield replace(segment, language=draft.language)


def _drafts(listed: list[Any]) -> Iterator[_Draft]:
    """The segments with text."""
    for index in range(len(listed)):
        entry = as_object(listed[index], f"segments[{index}]")
        listed[index] = None  # long transcripts take less memory
        inside = f"segments[{index}]."
        words = read_words(entry, "words", inside)
        if not words and "text" not in entry:
            raise not_a_transcript(f"segments[{index}] has no text")
        start, end = samples_field(entry, "start", inside), samples_field(entry, "end", inside)
        text = text_field(entry, "text", inside)
        text = text if text.strip() else joined_words(words)
        if text.strip():
            language = known_code(name_field(entry, "language") or "")
            yield _Draft(text, start, end, words, name_field(entry, "speaker"), language)


def _spans(drafts: Sequence[_Draft], duration: int | None) -> list[Span]:
    """The times of the segments; missing ones from their words, then from their neighbours."""
    spans = []
    for draft in drafts:
        starts = [word.start for word in draft.words if word.start is not None]
        ends = [word.end for word in draft.words if word.end is not None]
        start = min(starts, default=None) if draft.start is None else draft.start
        end = max(ends, default=None) if draft.end is None else draft.end
        spans.append((start, end))
    last = duration or max((time for span in spans for time in span if time is not None), default=0)
    return fill_times(spans, [len(draft.text) for draft in drafts], 0, last)


def _aligned(text: str, span: Span, candidates: Sequence[ReadWord]) -> list[ReadWord]:
    """The text as words with times; empty if the candidates are other words, or spoken at another time."""
    words = fill_word_times(align(text, candidates), *span) if candidates else []
    is_near = any((word.start or 0) <= span[1] and (word.end or 0) >= span[0] for word in words)
    return words if is_near else []


def new_segment(span: Span, text: str, words: Sequence[ReadWord] = (), speaker: str | None = None) -> Segment:
    """A segment without the model's scores. `words`: with all times. A word may say who speaks it."""
    segment = Segment(
        *span,
        text,
        tokens=(),
        temperature=0.0,
        avg_logprob=0.0,
        compression_ratio=1.0,
        no_speech_prob=0.0,
        words=tuple(Word(word.text, word.start or 0, word.end or 0, word.probability) for word in words),
    )
    speakers = known_speakers(words, speaker)
    if not any(speakers):
        return segment
    turns = [(at, after) for at, (before, after) in enumerate(pairwise(speakers), start=1) if before != after]
    return edited(segment, speaker=speakers[0], turns=tuple(turns))


def known_speakers(words: Sequence[ReadWord], speaker: str | None = None) -> list[str | None]:
    """Who speaks each word: as it says, else whoever speaks the word before, at the beginning the one after.

    Without words, who speaks the segment. Words of some tools say nothing; then `speaker` speaks all.
    """
    named = [word.speaker for word in words if word.speaker is not None]
    if not named:
        return [speaker] * max(len(words), 1)
    speakers: list[str | None] = []
    for word in words:
        speakers.append(word.speaker or (speakers[-1] if speakers else named[0]))
    return speakers


_PAUSE = SAMPLE_RATE  # samples; a new segment begins after it

# Stretches of text that may end a sentence, each with the space before it.
_STRETCH = re.compile(r"\s*[^\s。！？]*[。！？]*[」』”’）]*")


def segments_of_words(text: str, words: Sequence[ReadWord]) -> list[Segment]:
    """Segments of the text with its words, some of which have times.

    If they are the words of another text, the text is spread evenly over their time.
    """
    known = _known_times(words)
    aligned = fill_word_times(align(text, words), min(known), max(known))
    if not aligned:
        return segments_of_text(text, min(known), max(known))
    speakers = known_speakers(aligned)
    spoken = [replace(word, speaker=by) for word, by in zip(aligned, speakers, strict=True)]
    return [_segment(sentence, sentence) for sentence in _sentences(_in_order(spoken))]


def segments_of_text(text: str, start: int, end: int) -> list[Segment]:
    """Segments without words, with time in proportion to their text."""
    stretches = [ReadWord(found, None, None) for found in _STRETCH.findall(text) if found]
    stretches[0] = replace(stretches[0], start=start)
    timed = fill_word_times(stretches, start, end)
    return [_segment(sentence, ()) for sentence in _sentences(timed)]


def _in_order(words: Sequence[ReadWord]) -> Iterator[ReadWord]:
    """The words, none of which starts before the word in front of it: segments are sorted by their times."""
    starts = accumulate((word.start or 0 for word in words), max)
    for word, start in zip(words, starts, strict=True):
        yield replace(word, start=start, end=max(word.end or 0, start))


def _sentences(words: Iterable[ReadWord]) -> Iterator[list[ReadWord]]:
    """The words of each sentence, or of each part of one between pauses, or of one speaker."""
    sentence: list[ReadWord] = []
    for word in words:
        if sentence and (
            ends_sentence(sentence[-1].text, word.text)
            or (word.start or 0) - (sentence[-1].end or 0) >= _PAUSE
            or word.speaker != sentence[-1].speaker
        ):
            yield sentence
            sentence = []
        sentence.append(word)
    yield sentence


def _segment(texts: Sequence[ReadWord], words: Sequence[ReadWord]) -> Segment:
    times = _known_times(texts)
    return new_segment((min(times), max(times)), "".join(word.text for word in texts), words)


def _known_times(words: Iterable[ReadWord]) -> list[int]:
    return [time for word in words for time in (word.start, word.end) if time is not None]
