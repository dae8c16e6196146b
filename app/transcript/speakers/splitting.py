"""Segments are split where the speaker changes, or is silent for long. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from app.transcript.edited import EditedSegment, count_letters, word_speakers
from app.transcript.speakers.word_labels import runs
from workers.messages import SAMPLE_RATE, Span, Word

_LONG_PAUSE = SAMPLE_RATE  # samples without a word, in which a speaker counts as silent


def split(segment: EditedSegment, speakers: Sequence[str]) -> Iterator[EditedSegment]:
    """The segment, with its speaker; in parts, if it has several speakers or long pauses.

    `speakers`: of each word, or one for a segment without words. Joined, the parts have the words and the
    text of the segment. The first part keeps its id, the next ones get `.1`, `.2`, … after it.
    """
    spans = list(_spans(segment.words, speakers))
    texts = _texts(segment, spans)
    if len(spans) == 1 or texts is None:
        yield with_turns(segment, speakers)
        return
    letters = 0
    for number, ((first, end), text) in enumerate(zip(spans, texts, strict=True)):
        words = segment.words[first:end]
        yield replace(
            segment,
            id=f"{segment.id}.{number}" if number else segment.id,
            start=words[0].start if first else segment.start,
            end=words[-1].end if end < len(segment.words) else segment.end,
            text=text,
            tokens=(),  # those of the model say all of it, with its times
            words=words,
            speaker=speakers[first],
            replaced=tuple(
                replace(each, letter=each.letter - letters)
                for each in segment.replaced
                if letters <= each.letter < letters + count_letters(text)
            ),
        )
        letters += count_letters(text)


def with_turns(segment: EditedSegment, speakers: Sequence[str | None]) -> EditedSegment:
    """The segment with these speakers of its words, or the one speaker of a segment without words."""
    firsts = [first for first, _ in runs(speakers)]
    turns = tuple((first, speakers[first]) for first in firsts[1:])
    return replace(segment, speaker=speakers[0], turns=turns)


def listed_speakers(segment: EditedSegment) -> list[str | None]:
    """The reverse of `with_turns`: the speaker of each word, or the one of a segment without words."""
    return word_speakers(segment) or [segment.speaker]


def _spans(words: Sequence[Word], speakers: Sequence[str]) -> Iterator[Span]:
    """Spans of words with one speaker and without a long pause: first index, and index after the last."""
    for first, end in runs(speakers):
        pauses = (at for at in range(first + 1, end) if words[at].start - words[at - 1].end >= _LONG_PAUSE)
        yield from pairwise((first, *pauses, end))


def _texts(segment: EditedSegment, spans: Sequence[Span]) -> list[str] | None:
    """The text of each span of words; None if the words are not those of the text."""
    words = [word.text for word in segment.words]
    joined = "".join(words)
    at = segment.text.find(joined) if joined.strip() == segment.text.strip() else -1
    if at < 0:
        return None
    edges = [at + edge for edge in accumulate(map(len, words), initial=0)]
    cuts = [0, *(edges[first] for first, _ in spans[1:]), len(segment.text)]
    return [segment.text[start:end] for start, end in pairwise(cuts)]
