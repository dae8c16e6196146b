"""From the times of tokens to words with times, and which errors of an alignment cost only the words."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, chain
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


def timed_words(
    tokenizer: "Tokenizer", texts: Sequence[Sequence[int]], aligned: Alignment
) -> list[tuple[Word, ...]]:
    """The words of a window's texts, which were aligned together, in samples from the window's start.

    `texts`: the tokens of each. As `WhisperModel.find_alignment` of faster-whisper. Raises one of
    `ALIGNMENT_ERRORS` if they do not fit the times.
    """
    from faster_whisper.transcribe import merge_punctuations

    words, tokens_of_words = tokenizer.split_to_word_tokens([*chain(*texts), tokenizer.eot])
    timings: list[list[dict[str, Any]]] = [[] for _ in texts]
    ends = list(accumulate(map(len, texts)))
    first = 0
    for word, tokens in zip(words[:-1], tokens_of_words[:-1], strict=True):
        end = first + len(tokens)
        timing = {
            "word": word,
            "tokens": tokens,
            "start": aligned.starts[first] / FRAMES_PER_SECOND,
            "end": aligned.starts[end] / FRAMES_PER_SECOND,
            "probability": sum(aligned.probabilities[first:end]) / len(tokens),
        }
        timings[bisect_right(ends, first)].append(timing)
        first = end
    for of_text in timings:
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
        for of_text in timings
    ]
