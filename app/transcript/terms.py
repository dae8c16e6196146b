"""Names and terms as people want them written, where the model writes something else. Pure.

A term replaces whole words inside one segment, in any case; in scripts without spaces, characters.
Punctuation, hyphens, elided articles and a possessive `'s` stay around it. Its words share the time of those
that it replaces, and have the lowest of their probabilities.
"""

import re
import unicodedata
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
    Where terms overlap, the first one counts, and of
    those that begin together, the longest. No time moves. A segment with replacements stays as it is.
    """
    return tuple(
        _replaced(segment, _forms(terms, written or segment.language or language)) for segment in segments
    )


def undone(segment: T, replacement: Replacement) -> T:
    """The segment as it was before one of its replacements; unchanged if that is not in its text by now."""
    start, words = place_of(segment, replacement), segment.words
    if start is None or not _are_text(words, segment.text):
        return segment
    end = start + len(replacement.write)
    if words:
        first, last = _covered(words, start, end)
        again = replacement.words or _rewritten(
            words[first:last], start - _length(words[:first]), replacement
        )
        words = (*words[:first], *again, *words[last:])
    shift = count_letters(replacement.heard) - count_letters(replacement.write)
    others = tuple(
        replace(each, letter=each.letter + (shift if each.letter > replacement.letter else 0))
        for each in segment.replaced
        if each != replacement
    )
    text = segment.text[:start] + replacement.heard + segment.text[end:]
    return replace(segment, text=text, words=words, replaced=others)


def _replaced(segment: Segment, forms: _Forms) -> Segment:
    text, words = segment.text, segment.words
    if replacements_of(segment) or not _are_text(words, text):
        return segment
    matches = [match for match in _matches(text, forms) if _changes(text, match)]
    if not matches:
        return segment
    new_text, new_words, replaced = "", list[Word](), list[Replacement]()
    at = done = 0  # characters and words that are written
    for first, last, group in _groups(matches, words):
        start, end = group[0].start, group[-1].end
        edges = [start, *(edge for match in group for edge in (match.start, match.end))]
        kept = [text[before:after] for before, after in zip(edges[::2], edges[1::2], strict=False)]
        write = "".join(gap + match.term.write for gap, match in zip(kept, group, strict=True))
        new_text += text[at:start]
        one = Replacement(count_letters(new_text), write, text[start:end], words[first:last])
        new_text += write
        if words:
            undo = replace(one, write=one.heard, heard=write)
            new_words += [
                *words[done:first],
                *_rewritten(words[first:last], start - _length(words[:first]), undo),
            ]
        replaced.append(one)
        at, done = end, last
    new = (*new_words, *words[done:])
    return termed(replace(segment, text=new_text + text[at:], words=new), tuple(replaced))


def _are_text(words: Sequence[Word], text: str) -> bool:
    """Whether words have places in a text: they are all of it, or none are known."""
    return not words or "".join(word.text for word in words) == text


def _groups(matches: Sequence[_Match], words: Sequence[Word]) -> list[tuple[int, int, list[_Match]]]:
    """The matches with the first and the last word that each replaces, those that share a word together."""
    groups: list[tuple[int, int, list[_Match]]] = []
    for match in matches:
        first, last = _covered(words, match.start, match.end) if words else (0, 0)
        if words and groups and first < groups[-1][1]:
            before = groups.pop()
            groups.append((before[0], last, [*before[2], match]))
        else:
            groups.append((first, last, [match]))
    return groups


def _covered(words: Sequence[Word], start: int, end: int) -> tuple[int, int]:
    """The words that have characters of a part of their text: the first, and the one after the last."""
    ends = list(accumulate(len(word.text) for word in words))
    first = next((at for at, stop in enumerate(ends) if stop > start), len(words))
    last = next((at for at, stop in enumerate(ends) if stop >= end), len(words) - 1)
    return first, last + 1


def _length(words: Iterable[Word]) -> int:
    return sum(len(word.text) for word in words)


def _rewritten(words: Sequence[Word], start: int, replacement: Replacement) -> Iterator[Word]:
    """The words with the text from before a replacement, which begins at a character of theirs.

    They share the time by their width.
    """
    if not words:
        return
    joined = "".join(word.text for word in words)
    text = joined[:start] + replacement.heard + joined[start + len(replacement.write) :]
    texts = re.findall(r"\s*\S+(?:\s+\Z)?", text)
    edges = list(accumulate((width(each.strip()) for each in texts), initial=0))
    begin, length, columns = words[0].start, words[-1].end - words[0].start, max(edges[-1], 1)
    probability = min(word.probability for word in words)
    for each, (first, last) in zip(texts, pairwise(edges), strict=True):
        yield Word(each, begin + length * first // columns, begin + length * last // columns, probability)


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
