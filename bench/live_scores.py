"""What live streams are measured by: delays, words taken back, and the distance from an upload. Pure.

Arrivals are in s since the first sample of the recording was spoken, as positions in the recording are.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

import jiwer
import numpy as np

from bench.measuring import Figures
from bench.quality import normalise

LATE_S = 0.1  # word times that are further apart are off

_TRANSCRIPTION = "conversation.item.input_audio_transcription"


@dataclass(frozen=True, slots=True)
class TimedWord:
    """A word without punctuation, and where it is spoken (s)."""

    text: str
    start: float
    end: float


@dataclass(slots=True)
class Item:
    """A turn: when what arrived of it."""

    stopped_at: float | None = None  # its end, as the service found it
    completed_at: float | None = None
    text: str = ""
    words: list[TimedWord] = field(default_factory=list)
    deltas: list[tuple[float, str]] = field(default_factory=list)
    failed: bool = False

    def agreed(self) -> list[tuple[float, str]]:
        """When each word arrived that was sent as agreed."""
        return [(at, word) for at, text in self.deltas for word in normalise(text).split()]

    def first(self) -> list[tuple[float, str]]:
        """The words that arrived first, when they did: of a delta, or of the text if there was none."""
        if self.deltas:
            at, text = self.deltas[0]
        elif self.completed_at is not None:
            at, text = self.completed_at, self.text
        else:
            return []
        return [(at, word) for word in normalise(text).split()]


def items_of(events: Iterable[tuple[float, dict[str, Any]]]) -> list[Item]:
    """The turns of a stream, in order, from its events with their arrivals."""
    items: dict[str, Item] = {}
    for at, event in events:
        if "item_id" not in event:
            continue
        item = items.setdefault(event["item_id"], Item())
        match event["type"].removeprefix(f"{_TRANSCRIPTION}."):
            case "input_audio_buffer.speech_stopped":
                item.stopped_at = at
            case "input_audio_buffer.committed":
                item.stopped_at = item.stopped_at or at  # the client has ended it
            case "delta":
                item.deltas.append((at, event["delta"]))
            case "completed":
                item.completed_at, item.text = at, event["transcript"]
                item.words = timed_words(event.get("words") or ())
            case "failed":
                item.failed = True
    return list(items.values())


def timed_words(words: Iterable[dict[str, Any]]) -> list[TimedWord]:
    """Words with times, as the service answers them. One of several words has its time for each."""
    return [
        TimedWord(text, word["start"], word["end"])
        for word in words
        for text in normalise(word["word"]).split()
    ]


def matches(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The indices of words that both have, in order."""
    for block in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
        yield from zip(
            range(block.a, block.a + block.size), range(block.b, block.b + block.size), strict=True
        )


def word_delays(arrived: Sequence[tuple[float, str]], spoken: Sequence[TimedWord]) -> list[float | None]:
    """How long after the end of each word it arrived (s); None for words that `spoken` does not have."""
    delays: list[float | None] = [None] * len(arrived)
    for i, j in matches([text for _, text in arrived], [word.text for word in spoken]):
        delays[i] = arrived[i][0] - spoken[j].end
    return delays


def first_delays(items: Sequence[Item], spoken: Sequence[TimedWord]) -> list[float]:
    """How long after the end of the first word of each turn it arrived (s)."""
    arrived = [pair for item in items for pair in item.first()]
    delays = word_delays(arrived, spoken)
    found, position = [], 0
    for item in items:
        size = len(item.first())
        known = [delay for delay in delays[position : position + size] if delay is not None]
        found += known[:1]
        position += size
    return found


def taken_back(item: Item) -> int:
    """How many words were sent as agreed, and are not in their place in the text."""
    agreed = [word for _, word in item.agreed()]
    return len(agreed) - len(list(matches(agreed, normalise(item.text).split())))


def time_distances(ours: Sequence[TimedWord], theirs: Sequence[TimedWord]) -> list[float]:
    """How far the starts and ends of the words that both have are apart (s)."""
    pairs = matches([word.text for word in ours], [word.text for word in theirs])
    return [
        abs(one - other)
        for i, j in pairs
        for one, other in ((ours[i].start, theirs[j].start), (ours[i].end, theirs[j].end))
    ]


def errors(truth: str, text: str) -> int:
    """Word errors of a text."""
    found = jiwer.process_words(normalise(truth), normalise(text))
    return found.substitutions + found.deletions + found.insertions


def scores(items: Sequence[Item], spoken: Sequence[TimedWord], uploaded: str, truth: str | None) -> Figures:
    """All figures of one stream; lists of delays and distances in s. `spoken`, `uploaded`: by upload."""
    text = " ".join(item.text for item in items)
    agreed = [pair for item in items for pair in item.agreed()]
    words = [word for item in items for word in item.words]
    return {
        "turns": len(items),
        "failed": sum(item.failed for item in items),
        "incomplete": sum(item.completed_at is None and not item.failed for item in items),
        "first_s": first_delays(items, spoken),
        "words_s": [delay for delay in word_delays(agreed, spoken) if delay is not None],
        "final_s": [
            item.completed_at - item.stopped_at
            for item in items
            if item.completed_at is not None and item.stopped_at is not None
        ],
        "agreed": len(agreed),
        "taken_back": sum(taken_back(item) for item in items),
        "times_s": time_distances(words, spoken),
        "truth_words": len(normalise(truth or uploaded).split()),
        "errors": errors(truth or uploaded, text),
        "upload_errors": 0 if truth is None else errors(truth, uploaded),
        "text": text,
    }


def summary(streams: Sequence[Figures]) -> Figures:
    """The figures of several streams as one."""

    def spread(name: str, *percentiles: float) -> list[float | None]:
        values = [value for stream in streams for value in stream[name]]
        return [round(float(np.percentile(values, part)), 2) if values else None for part in percentiles]

    def total(name: str) -> int:
        return sum(stream[name] for stream in streams)

    distances = [value for stream in streams for value in stream["times_s"]]
    words = max(1, total("truth_words"))
    return {
        "turns": total("turns"),
        "without_text": total("failed") + total("incomplete"),
        "first_s": spread("first_s", 50, 95),
        "words_s": spread("words_s", 50, 95),
        "final_s": spread("final_s", 50, 95),
        "taken_back_percent": round(100 * total("taken_back") / max(1, total("agreed")), 1),
        "wer_percent": round(100 * total("errors") / words, 2),
        "upload_wer_percent": round(100 * total("upload_errors") / words, 2),
        "times_s": spread("times_s", 50, 95),
        "times_off_percent": round(
            100 * sum(distance > LATE_S for distance in distances) / max(1, len(distances)), 1
        ),
    }
