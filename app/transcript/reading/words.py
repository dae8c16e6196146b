"""The words of a transcript, as a file lists them. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from app.transcript.reading.fields import (
    Object,
    as_object,
    entries,
    name_field,
    number_field,
    samples_field,
    text_field,
)
from app.transcript.reading.spacing import with_spaces
from app.transcript.reading.times import fill_times

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
