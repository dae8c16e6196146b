"""From CTranslate2's alignment to words with times, and which errors of an alignment cost only the words."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from workers.messages import SAMPLE_RATE, Word
from workers.whisper.results import score

# Constants of openai-whisper (`transcribe.py`).
_PREPENDED_PUNCTUATION = "\"'“¿([{-"
_APPENDED_PUNCTUATION = "\"'.。,，!！?？:：”)]}、"

# CTranslate2 raises the first two, and faster-whisper's arithmetic with its answer the last two.
ALIGNMENT_ERRORS = (RuntimeError, ValueError, IndexError)


def assign_words(timings: Sequence[dict[str, Any]], lengths: Sequence[int]) -> list[tuple[Word, ...]]:
    """Assign a window's aligned words to its texts, given each text's length in tokens."""
    from faster_whisper.transcribe import merge_punctuations

    timings_of_texts: list[list[dict[str, Any]]] = [[] for _ in lengths]
    ends = list(accumulate(lengths))
    position = 0
    for timing in timings:
        timings_of_texts[bisect_right(ends, position)].append(timing)
        position += len(timing["tokens"])
    for of_text in timings_of_texts:
        merge_punctuations(of_text, _PREPENDED_PUNCTUATION, _APPENDED_PUNCTUATION)
    return [
        tuple(
            Word(
                text=timing["word"],
                start=round(timing["start"] * SAMPLE_RATE),
                end=round(timing["end"] * SAMPLE_RATE),
                probability=score(timing["probability"], 0.0),
            )
            for timing in of_text
            if timing["word"]
        )
        for of_text in timings_of_texts
    ]
