"""From the times of tokens to words with times, and which errors of an alignment cost only the words."""

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


def words_of_texts(
    tokenizer: "Tokenizer", texts: Sequence[Sequence[int]], aligned: Alignment
) -> list[tuple[Word, ...]]:
    """The words of each text of a window, from its tokens. `aligned`: of all of them.

    As `WhisperModel.find_alignment` of faster-whisper, but no word is in two texts: some models write no
    space between these. Raises IndexError if times are missing.
    """
    from faster_whisper.transcribe import merge_punctuations

    starts = accumulate((len(tokens) for tokens in texts), initial=0)
    words_of = [_words_with_times(tokenizer, *text, aligned) for text in zip(texts, starts, strict=False)]
    for words in words_of:
        merge_punctuations(words, _PREPENDED_PUNCTUATION, _APPENDED_PUNCTUATION)
    return [
        tuple(
            Word(
                text=timing["word"],
                start=round(timing["start"] * SAMPLE_RATE),
                end=round(timing["end"] * SAMPLE_RATE),
                probability=score(timing["probability"], 0.0),
            )
            for timing in words
            if timing["word"]
        )
        for words in words_of
    ]


def _words_with_times(
    tokenizer: "Tokenizer", tokens: Sequence[int], start: int, aligned: Alignment
) -> list[dict[str, Any]]:
    """The words of a text's tokens: each with its tokens, its start and end in s, and its probability.

    `start`: the place of its first token in `aligned`.
    """
    words, tokens_of_words = tokenizer.split_to_word_tokens([*tokens, tokenizer.eot])
    borders = accumulate((len(of_word) for of_word in tokens_of_words[:-1]), initial=start)
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
