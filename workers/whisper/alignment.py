"""From the times of tokens to words with times, and which errors of an alignment cost only the words."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from workers.messages import SAMPLE_RATE, Word
from workers.whisper.backend import FRAMES_PER_SECOND, Alignment
from workers.whisper.results import score

if TYPE_CHECKING:
    from faster_whisper.tokenizer import Tokenizer

# Constants of openai-whisper (`transcribe.py`).
_PREPENDED_PUNCTUATION = "\"'“¿([{-"
_APPENDED_PUNCTUATION = "\"'.。,，!！?？:：”)]}、"

# CTranslate2 raises the first two, and the arithmetic with its answer the last two.
ALIGNMENT_ERRORS = (RuntimeError, ValueError, IndexError)


def words_with_times(
    tokenizer: "Tokenizer", tokens: Sequence[int], aligned: Alignment
) -> list[dict[str, Any]]:
    """The words of a text's tokens: each with its tokens, its start and end in s, and its probability.

    As `WhisperModel.find_alignment` of faster-whisper. Raises IndexError if times are missing.
    """
    words, tokens_of_words = tokenizer.split_to_word_tokens([*tokens, tokenizer.eot])
    borders = [0, *accumulate(len(of_word) for of_word in tokens_of_words[:-1])]
    return [
        {
            "word": word,
            "tokens": of_word,
            "start": aligned.starts[first] / FRAMES_PER_SECOND,
            "end": aligned.starts[end] / FRAMES_PER_SECOND,
            "probability": sum(aligned.probabilities[first:end]) / (end - first),
        }
        for word, of_word, (first, end) in zip(
            words[:-1], tokens_of_words[:-1], pairwise(borders), strict=True
        )
    ]


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
