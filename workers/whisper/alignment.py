"""From the times of tokens to words with times, and which errors of an alignment cost only the words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workers.messages import Word
from workers.whisper.backend import Alignment
from workers.whisper.results import SAMPLES_PER_TIMESTAMP, score

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
    """The words of a window's texts, which were aligned together, in samples from the window's start.

    `texts`: the tokens of each. As `WhisperModel.find_alignment` of faster-whisper, but no word is in two
    texts: some models write no space between these. Raises one of `ALIGNMENT_ERRORS` if they do not fit the
    times.
    """
    from faster_whisper.transcribe import merge_punctuations

    found = []
    first = 0  # token of a word, among those of all texts
    for text in texts:
        timings: list[dict[str, Any]] = []
        words, tokens_of_words = tokenizer.split_to_word_tokens([*text, tokenizer.eot])
        for word, tokens in zip(words[:-1], tokens_of_words[:-1], strict=True):
            end = first + len(tokens)
            times = [aligned.starts[at] * SAMPLES_PER_TIMESTAMP for at in (first, end)]
            probability = score(sum(aligned.probabilities[first:end]) / len(tokens), 0.0)
            timings.append({"word": word, "tokens": tokens, "aligned": (*times, probability)})
            first = end
        merge_punctuations(timings, _PREPENDED_PUNCTUATION, _APPENDED_PUNCTUATION)
        found.append(tuple(Word(each["word"], *each["aligned"]) for each in timings if each["word"]))
    return found
