"""The agreement of drafts: words of a growing text are certain if its drafts agree on them for a while. Pure.

Local agreement, as by Liu, Spanakis and Niehues (2020) and in whisper_streaming (Machacek, Dabre and Bojar,
2023), which compares two drafts a second apart. Drafts that follow sooner have the same half of a word, so
all of a while have to agree. They may differ in case and punctuation, which often change with the next word.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from app.transcript.text.scripts import UNSPACED
from workers.messages import SAMPLE_RATE

# Of audio that the newest draft has, and the oldest one has not, if all between them agree on a word: on the
# first ones of a clip, for which people wait, and on later ones, which noise and the next words may change.
FIRST_SAMPLES = 3 * SAMPLE_RATE // 10
LATER_SAMPLES = 5 * SAMPLE_RATE // 8

# A word with the space before it; in scripts without spaces, a character.
_WORDS = re.compile(rf"\s*(?:[{UNSPACED}]|[^\s{UNSPACED}]+)")


def split_words(text: str) -> list[str]:
    """The words of a text, each with the space before it. Joined, they are the text up to its last word."""
    return _WORDS.findall(text)


@dataclass(slots=True)
class _Draft:
    until: int  # the sample up to which it has the audio
    said_until: int  # the end of the speech in that
    words: list[str]
    end: int  # of the words in it that are certain


class Agreement:
    """What the drafts of one clip agree on."""

    def __init__(self) -> None:
        self._drafts: list[_Draft] = []  # that may have to agree, in order
        self.words: list[str] = []  # that are certain, as they were returned
        self.said_until = 0  # the end of the speech that all drafts have which agreed last

    @property
    def needs(self) -> int:
        """How many samples the newest draft needs that the oldest one has not, to agree on more words."""
        return LATER_SAMPLES if self.words else FIRST_SAMPLES

    def add(self, draft: str, until: int, said_until: int) -> list[str]:
        """Add the text of a draft. Returns the words that are certain now, with the spaces before them.

        Punctuation comes with the word that follows it: drafts close what they have with a full stop.

        `until`: the sample up to which it has the audio. `said_until`: the end of the speech in that.
        """
        drafts = self._drafts
        while len(drafts) > 1 and drafts[1].until <= until - LATER_SAMPLES:
            del drafts[0]
        words = split_words(draft)
        # Words are compared behind those that are certain: a name there that drafts spell in two ways would
        # hold up what follows.
        newest = _Draft(until, said_until, words, _end_of(self.words, words))
        certain: list[str] = []
        old_enough = until - self.needs
        old = [place for place, other in enumerate(drafts) if other.until <= old_enough]
        drafts.append(newest)
        if old:
            agreeing = drafts[old[-1] :]
            behind = words[newest.end :]
            certain = behind[: min(_common_prefix(behind, other.words[other.end :]) for other in agreeing)]
            certain = _held_back(certain, _closing(words[newest.end - 1]) if newest.end else "")
            self.said_until = agreeing[0].said_until
            self.words += certain
            for other in agreeing:  # the same words follow in all of them
                other.end += len(certain)
            for other in drafts[: old[-1]]:
                other.end = _end_of(self.words, other.words)
        return certain

    def continue_after(self, sent: Sequence[str]) -> None:
        """Take words for certain that were sent already: drafts of the clip before had them, too."""
        self.words = [*sent, *self.words[_end_of(sent, self.words) :]]
        for other in self._drafts:
            other.end = _end_of(self.words, other.words)


def _held_back(certain: list[str], closing: str) -> list[str]:
    """Certain words without the punctuation at their end, behind `closing`, that of the word before them."""
    while certain and _closing(certain[-1]) == certain[-1].strip():
        certain = certain[:-1]
    if certain:
        certain[0] = closing + certain[0]
        certain[-1] = certain[-1].removesuffix(_closing(certain[-1]))
    return certain


def _closing(word: str) -> str:
    """The punctuation at the end of a word."""
    end = len(word)
    while end and unicodedata.category(word[end - 1])[0] == "P":
        end -= 1
    return word[end:]


def words_behind(text: str, agreed: Sequence[str]) -> list[str]:
    """The words that were agreed on of what comes after a text, which may have other words in some places."""
    return [*agreed[_end_of(split_words(text), agreed) :]]


def rest_of(agreed: Sequence[str], text: str) -> str | None:
    """What a text has behind words that were agreed on; None if it does not begin with them."""
    words = split_words(text)
    if _common_prefix(words, agreed) < len(agreed):
        return None
    return (_closing(words[len(agreed) - 1]) if agreed else "") + "".join(words[len(agreed) :])


def _common_prefix(words: Sequence[str], others: Sequence[str]) -> int:
    """How many words two texts have in common at their beginning."""
    for count, (word, other) in enumerate(zip(words, others, strict=False)):
        if folded(word) != folded(other):
            return count
    return min(len(words), len(others))


def _end_of(agreed: Sequence[str], words: Sequence[str]) -> int:
    """Where words that were agreed on end in a draft, which may have other words in some places.

    The beginning of the draft that takes the fewest changes; of equal ones, that with as many words.
    """
    if _common_prefix(words, agreed) == len(agreed):
        return len(agreed)
    # Levenshtein's distance of the agreed words from each beginning of the draft.
    keys = [folded(word) for word in words]
    distances = list(range(len(words) + 1))
    for row, word in enumerate(map(folded, agreed), start=1):
        diagonal, distances[0] = distances[0], row
        for column, other in enumerate(keys, start=1):
            changed = diagonal + (word != other)
            diagonal = distances[column]
            distances[column] = min(changed, diagonal + 1, distances[column - 1] + 1)
    return min(range(len(words) + 1), key=lambda end: (distances[end], abs(end - len(agreed))))


def folded(word: str) -> str:
    """The letters and digits of a word, without case; if it has none, all of it but punctuation."""
    kinds = [(char, unicodedata.category(char)[0]) for char in word.casefold()]
    letters = "".join(char for char, kind in kinds if kind in "LNM")
    return letters or "".join(char for char, kind in kinds if kind not in "PZ")
