"""The words of a text, as the search of jobs compares them. Pure.

Case and accents do not matter. Scripts without spaces have no words to find: each two neighbouring characters
are one, and so is the last character of such text.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain

from app.transcript.text.scripts import is_unspaced, with_few_marks

MAX_TAG_CHARS = 50
MAX_WORD_CHARS = 64  # of a longer word, only its beginning counts
# Of the words of a text, and of what people call the job, in UTF-8. PostgreSQL's limit for both is 1 MiB with
# the beginnings of words, which may take 1.6 times as much as the words.
MAX_BYTES, MAX_DETAILS_BYTES = 344 << 10, 40 << 10

# Latin, Greek and Cyrillic have the first of these; the marks of other scripts are parts of their words. The
# rest is invisible: hyphenation, joiners, the spaces of Khmer and Thai without width, variants of characters.
_IGNORED = re.compile("[\u0300-\u036f\u00ad\u200b\u200d\u2060\ufeff\ufe00-\ufe0f\U000e0100-\U000e01ef]")
# Letters with strokes do not decompose; dotless i is an i where others write Turkish. Letters in Unicode,
# apostrophes in practice, separate words, as ' and ’ do ("l'eau").
_PLAIN = str.maketrans("øłđħŧı\u02b9\u02bb\u02bc\ua78c", "oldhti    ")
_TAG_MARK = "\ue000"  # before and after a tag: no text has words with it


def text_words(text: str) -> str:
    """The distinct words of a text, separated by spaces, in the order of their first appearance.

    Words beyond `MAX_BYTES` are left out. Costs CPU time on long texts: let `Helper` call it.
    """
    return _joined(_indexed_words(text), MAX_BYTES)


def detail_words(tags: Iterable[str], *texts: str) -> str:
    """The same for tags and short texts. A tag is found whole, by `tag_word`, and by its words."""
    tags = list(tags)
    words = chain.from_iterable(map(_indexed_words, (*tags, *texts)))
    return _joined(chain(map(tag_word, tags), words), MAX_DETAILS_BYTES)


def tag_word(tag: str) -> str:
    """The word by which jobs with a tag are found. Case does not matter."""
    return f"{_TAG_MARK}{folded_tag(tag).encode().hex()}{_TAG_MARK}"


def folded_tag(tag: str) -> str:
    """What equal tags have in common."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", tag).casefold())


def _joined(words: Iterable[str], max_bytes: int) -> str:
    kept: list[str] = []
    size = 0
    for word in dict.fromkeys(words):
        size += len(word.encode()) + 1
        if size > max_bytes:
            break
        kept.append(word)
    return " ".join(kept)


def query_words(query: str) -> list[str]:
    """What a text must have to match a query: for each of these, a word that begins with it."""
    return list(dict.fromkeys(chain.from_iterable(_pairs(run) or [run] for run in _runs(query))))


def comparable_texts(texts: Iterable[str]) -> list[str]:
    """Texts in which the terms of a query are found as they are: their words, each after a space.

    Each of `texts` is one line. Costs CPU time on many: let `Helper` call it.
    """
    lines = _folded("\n".join(texts)).split("\n")
    return ["".join(f" {run}" for run in _runs_of(line.split())) for line in lines]


def query_terms(query: str) -> list[str]:
    """What the comparable text of a sentence has if it matches a query: each of these, or some of them."""
    return list(dict.fromkeys(run if is_unspaced(run[0]) else f" {run}" for run in _runs(query)))


def _indexed_words(text: str) -> Iterator[str]:
    for run in _runs(text):
        if is_unspaced(run[0]):
            yield from _pairs(run)
            yield run[-1]
        else:
            yield run


def _pairs(run: str) -> list[str]:
    """Each two neighbouring characters of a run of a script without spaces; empty for all others."""
    return [run[at : at + 2] for at in range(len(run) - 1)] if is_unspaced(run[0]) else []


def _runs(text: str) -> Iterator[str]:
    """The runs of letters, digits and marks, each in scripts with spaces or in scripts without them."""
    return _runs_of(_folded(text).split())


def _runs_of(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        if word.isascii():  # most words: a look at each character takes three times as long
            yield word[:MAX_WORD_CHARS]
            continue
        start = 0
        for at in range(1, len(word) + 1):
            if at == len(word) or is_unspaced(word[at]) is not is_unspaced(word[start]):
                run = word[start:at]
                yield run if is_unspaced(run[0]) else run[:MAX_WORD_CHARS]
                start = at


def _folded(text: str) -> str:
    """A text as it is compared, with spaces, or the ends of its lines, between its words."""
    folded = unicodedata.normalize("NFKC", with_few_marks(text)).casefold()
    plain = _IGNORED.sub("", unicodedata.normalize("NFD", folded))
    # Without the marks, letters of other scripts must be whole again: Hangul, kana.
    plain = unicodedata.normalize("NFC", plain)
    others = {char for char in set(plain) - {"\n"} if unicodedata.category(char)[0] not in "LNM"}
    return plain.translate(_PLAIN | {ord(char): " " for char in others})
