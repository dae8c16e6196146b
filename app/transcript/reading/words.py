"""The words of a transcript, as a file lists them; spaces and times that some lack. Pure."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from app.transcript.reading.fields import (
    Object,
    as_object,
    entries,
    name_field,
    number_field,
    samples_field,
    text_field,
)
from app.transcript.text.breaks import ends_sentence
from app.transcript.text.scripts import is_unspaced
from workers.messages import Span


def with_spaces(texts: Iterable[str], some_have_spaces: bool) -> Iterator[str]:
    """The texts, none empty, with a space before each that needs one: they can be joined as they are.

    Where some texts begin with a space, one that does not continues the text before it, unless that ended a
    sentence: whisperX drops the spaces between sentences.
    """
    before = ""
    for text in texts:
        needs_none = any(char.isspace() or is_unspaced(char) for char in (before[-1:], text[0]) if char)
        if before and not needs_none and (not some_have_spaces or ends_sentence(before.split()[-1])):
            text = f" {text}"
        yield text
        before = text


MaybeSpan = tuple[int | None, int | None]  # start and end in samples, as far as they are known


def fill_times(spans: Sequence[MaybeSpan], lengths: Sequence[int], first: int, last: int) -> list[Span]:
    """The spans of texts in a row, which lasts from `first` to `last`, with all times.

    Between two known times, texts take time in proportion to their `lengths`.
    """
    columns = [0, *accumulate(lengths)]
    edges: list[tuple[int, int | None]] = [(0, first)]  # `(column, time)`
    for (start, end), begins, ends in zip(spans, columns[:-1], columns[1:], strict=True):
        edges += (begins, start), (ends, end)
    edges.append((columns[-1], last))
    known = [index for index, (_, time) in enumerate(edges) if time is not None]
    times = [_time(index, edges, known) for index in range(1, len(edges) - 1)]
    return list(zip(times[0::2], times[1::2], strict=True))


def _time(index: int, edges: Sequence[tuple[int, int | None]], known: Sequence[int]) -> int:
    column, time = edges[index]
    if time is not None:
        return time
    after = bisect_left(known, index)
    (left, begins), (right, ends) = edges[known[after - 1]], edges[known[after]]
    assert begins is not None
    assert ends is not None
    return begins + (ends - begins) * (column - left) // max(right - left, 1)


_CERTAIN = 1.0  # of a word without a probability, which is only passed on


@dataclass(frozen=True, slots=True)
class ReadWord:
    """A word with its times in samples, as far as they are known."""

    text: str
    start: int | None
    end: int | None
    probability: float = _CERTAIN
    speaker: str | None = None


def read_words(parent: Object, name: str, place: str = "") -> list[ReadWord]:
    """The words with text in the list of that name. Its items are objects: `{word, start, end, …}`."""
    found = []
    for index, item in enumerate(entries(parent, name, place) or ()):
        inside = f"{place}{name}[{index}]"
        entry = as_object(item, inside)
        inside += "."
        text = text_field(entry, "word" if "word" in entry else "text", inside)
        start, end = samples_field(entry, "start", inside), samples_field(entry, "end", inside)
        probability = number_field(entry, "probability" if "probability" in entry else "score", inside)
        if text.strip():
            certainty = _CERTAIN if probability is None else probability
            found.append(ReadWord(text, start, end, certainty, name_field(entry, "speaker")))
    return found


def joined_words(words: Sequence[ReadWord]) -> str:
    """The text that the words make up, with the spaces that they lack."""
    have_spaces = any(word.text[0].isspace() for word in words)
    texts = [word.text for word in words]
    return "".join(texts if have_spaces else with_spaces(texts, some_have_spaces=False))


def has_times(words: Iterable[ReadWord]) -> bool:
    """Whether any word has a time."""
    return any(word.start is not None or word.end is not None for word in words)


def fill_word_times(words: Sequence[ReadWord], first: int, last: int) -> list[ReadWord]:
    """The words with all times, between `first` and `last` in samples; none if no word has a time."""
    if not has_times(words):
        return []
    if all(word.start is not None and word.end is not None for word in words):
        return list(words)
    lengths = [len(word.text) for word in words]
    spans = fill_times([(word.start, word.end) for word in words], lengths, first, last)
    return [replace(word, start=start, end=end) for word, (start, end) in zip(words, spans, strict=True)]
