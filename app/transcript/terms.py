"""Names and terms as people want them written, where the model writes something else. Pure.

A term replaces whole words inside one segment, in any case; in scripts without spaces, characters.
Punctuation, hyphens, elided articles and a possessive `'s` stay around it. Its words share the time of those
that it replaces, and have the lowest of their probabilities.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import accumulate, pairwise
from typing import TypeVar

from app.transcript.edited import Replacement, TermedSegment, count_letters, place_of, replacements_of, termed
from app.transcript.text.scripts import UNSPACED, width
from workers.messages import Segment, Word

# French and Italian articles and the like before a vowel. They are words of their own.
_ELIDED = "(?i:[cdjlmnst]|qu|un|quest|(?:d[ae]|ne|su|a)?ll)['’]"
_CODES = range(0x300, 0x1F000)  # with all marks but variants of characters

S = TypeVar("S", bound=Segment)
T = TypeVar("T", bound=TermedSegment)


@dataclass(frozen=True, slots=True)
class Term:
    """A word, or several, as people want it written."""

    write: str
    heard: tuple[str, ...]  # what the model writes instead
    language: str | None = None  # ISO 639-1: only in text of this language


class TermConflict(ValueError):
    """Of two terms, one undoes the other. The message names both."""


@dataclass(frozen=True, slots=True)
class _Match:
    """Characters of a text, and the term that replaces them."""

    start: int
    end: int
    term: Term


# What the model writes, as folded tokens, with its term: by the first token, the longest first.
_Forms = dict[str, list[tuple[tuple[str, ...], Term]]]


def check_terms(terms: Sequence[Term]) -> None:
    """Raise `TermConflict` if two terms replace the same words, or if the list changes what it writes."""
    known: dict[tuple[str | None, tuple[str, ...]], tuple[str, Term]] = {}
    for term in terms:
        for heard in term.heard:
            _, other = known.setdefault((term.language, _key(heard)), (heard, term))
            if other.write != term.write:
                raise TermConflict(f"{heard!r} stands for both {other.write!r} and {term.write!r}. Keep one")
    for term, match in _changed(terms, terms):
        part = term.write[match.start : match.end]
        raise TermConflict(
            f"{term.write!r} contains {part!r}, which {match.term.write!r} replaces. Keep one of the two"
        )


def joined_terms(own: tuple[Term, ...], common: tuple[Term, ...]) -> tuple[Term, ...]:
    """Both lists, without those of `common` that disagree with one of `own`."""
    undoing = {match.term for _, match in _changed(own, common)}
    undone_by_own = {term for term, _ in _changed(common, own)}
    return (*own, *(term for term in common if term not in undoing | undone_by_own))


def replace_terms(
    segments: Iterable[Segment], terms: tuple[Term, ...], language: str | None, written: str | None = None
) -> tuple[Segment, ...]:
    """The segments with the terms instead of what the model wrote; each says what it replaces.

    `language`: ISO 639-1 code of segments that name none. `written`: that of all text, if it is translated.
    Where terms overlap, the first one counts, and of those that begin together, the longest. No time moves. A
    segment with replacements stays as it is.
    """
    return tuple(
        _replaced(segment, _forms(terms, written or segment.language or language)) for segment in segments
    )


def undone(segment: T, replacement: Replacement) -> T:
    """The segment as it was before one of its replacements; unchanged if that is not in its text by now."""
    start = place_of(segment, replacement)
    if start is None or not _are_text(segment.words, segment.text):
        return segment
    write, heard = replacement.write, replacement.heard
    before = _substituted(segment, start, start + len(write), heard, replacement.words)
    shift = count_letters(heard) - count_letters(write)
    others = tuple(
        replace(each, letter=each.letter + (shift if each.letter > replacement.letter else 0))
        for each in segment.replaced
        if each != replacement
    )
    return replace(before, replaced=others)


def _replaced(segment: Segment, forms: _Forms) -> Segment:
    text, words = segment.text, segment.words
    if replacements_of(segment) or not _are_text(words, text):
        return segment
    groups: list[tuple[range, list[_Match]]] = []  # the words of which matches are, and those that share one
    for match in _matches(text, forms):
        if _changes(text, match):
            of_words = _covered(words, match.start, match.end)
            if groups and of_words.start < groups[-1][0].stop:
                before, group = groups.pop()
                groups.append((range(before.start, of_words.stop), [*group, match]))
            else:
                groups.append((of_words, [match]))
    replaced: list[Replacement] = []
    shift = 0
    for of_words, group in groups:
        start, end = group[0].start, group[-1].end
        write = text[start:end]
        for match in reversed(group):
            write = write[: match.start - start] + match.term.write + write[match.end - start :]
        letter = count_letters(text[:start]) + shift
        replaced.append(Replacement(letter, write, text[start:end], words[of_words.start : of_words.stop]))
        shift += count_letters(write) - count_letters(text[start:end])
    for one, (_, group) in zip(reversed(replaced), reversed(groups), strict=True):
        segment = _substituted(segment, group[0].start, group[-1].end, one.write)
    return termed(segment, tuple(replaced)) if replaced else segment


def _substituted(segment: S, start: int, end: int, text: str, words: tuple[Word, ...] = ()) -> S:
    """The segment with another text between two of its characters.

    `words`: those that have it then. Empty: they share the time of those that had it, by their width.
    """
    old = _covered(segment.words, start, end)
    if old and not words:
        before = "".join(word.text for word in segment.words[: old.stop])
        first = len(before) - sum(len(segment.words[at].text) for at in old)
        words = tuple(_shared(segment.words[old.start : old.stop], before[first:start] + text + before[end:]))
    new = (*segment.words[: old.start], *words, *segment.words[old.stop :])
    return replace(segment, text=segment.text[:start] + text + segment.text[end:], words=new)


def _covered(words: Sequence[Word], start: int, end: int) -> range:
    """Which words have characters of a part of their text."""
    edges = list(accumulate((len(word.text) for word in words), initial=0))
    return range(bisect_right(edges, start) - 1, bisect_left(edges, end)) if words else range(0)


def _shared(words: Sequence[Word], text: str) -> Iterator[Word]:
    """The words of a text that replaces those of others: they share the time by their width."""
    texts = re.findall(r"\s*\S+(?:\s+\Z)?", text)
    edges = list(accumulate((width(each.strip()) for each in texts), initial=0))
    begin, length, columns = words[0].start, words[-1].end - words[0].start, max(edges[-1], 1)
    probability = min(word.probability for word in words)
    for each, (first, last) in zip(texts, pairwise(edges), strict=True):
        yield Word(each, begin + length * first // columns, begin + length * last // columns, probability)


def _are_text(words: Sequence[Word], text: str) -> bool:
    """Whether words have places in a text: they are all of it, or none are known."""
    return not words or "".join(word.text for word in words) == text


def _changed(terms: Iterable[Term], by: Sequence[Term]) -> Iterator[tuple[Term, _Match]]:
    """The terms that others change: each with a match in what it writes."""
    terms = tuple(terms)
    for language in dict.fromkeys([None, *(term.language for term in (*terms, *by))]):
        forms = _forms(tuple(by), language)
        for term in terms:
            if term.language in (None, language):
                yield from ((term, at) for at in _matches(term.write, forms) if _changes(term.write, at))


def _changes(text: str, match: _Match) -> bool:
    return text[match.start : match.end] != match.term.write


def _matches(text: str, forms: _Forms) -> Iterator[_Match]:
    """Where terms replace something, in order, without overlap."""
    if not forms:
        return
    spans = [found.span() for found in _token_pattern().finditer(text)]
    tokens = [_folded(text[start:end]) for start, end in spans]
    at = 0
    while at < len(tokens):
        for form, term in forms.get(tokens[at], ()):
            if tuple(tokens[at : at + len(form)]) == form:
                yield _Match(spans[at][0], spans[at + len(form) - 1][1], term)
                at += len(form)
                break
        else:
            at += 1


@lru_cache(maxsize=64)
def _forms(terms: tuple[Term, ...], language: str | None) -> _Forms:
    """The forms of the terms that count in a language; its own come before those of all languages."""
    forms: _Forms = {}
    seen: set[tuple[str, ...]] = set()
    of_language = [term for term in terms if term.language == language and language is not None]
    for term in (*of_language, *(term for term in terms if term.language is None)):
        for key in map(_key, term.heard):
            if key not in seen:
                seen.add(key)
                forms.setdefault(key[0], []).append((key, term))
    for of_token in forms.values():
        of_token.sort(key=lambda form: -len(form[0]))
    return forms


def has_words(text: str) -> bool:
    """Whether a text has a letter or a digit, so that it can be found."""
    return any(char.isalnum() for char in text)


@lru_cache(maxsize=1 << 13)
def _key(text: str) -> tuple[str, ...]:
    return tuple(_folded(token) for token in _token_pattern().findall(text))


@lru_cache(maxsize=1 << 14)
def _folded(token: str) -> str:
    return unicodedata.normalize("NFKC", token).casefold().replace("’", "'")


@cache
def _token_pattern() -> re.Pattern[str]:
    """Words, with apostrophes and points inside them; characters of scripts without spaces; all else."""
    marks = "".join(char for char in map(chr, _CODES) if unicodedata.category(char)[0] == "M")
    letter = rf"(?:[^\W{UNSPACED}]|(?![{UNSPACED}])[{marks}])"
    number = r"(?<=\d)[.,:](?=\d)"
    return re.compile(
        rf"(?:(?<!{letter}){_ELIDED}(?={letter}))"
        rf"|['’][sS](?!{letter})"
        rf"|{letter}+(?:(?:['’](?![sS](?!{letter}))(?={letter})|{number}){letter}+)*"
        rf"|(?!\s)[{UNSPACED}][{marks}]*"
        r"|\S"
    )
