"""Segments of a sentence or less, made from words or text without segments. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from app.transcript.break_points import ends_sentence
from app.transcript.reading.alignment import align
from app.transcript.reading.segments import known_speakers, new_segment
from app.transcript.reading.words import ReadWord, fill_word_times
from workers.messages import SAMPLE_RATE, Segment

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
