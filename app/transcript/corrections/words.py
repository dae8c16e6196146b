"""The words of corrected segments: old ones with their times, new ones with the time between them. Pure."""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from app.transcript.corrections.diff import kept_tokens
from app.transcript.corrections.tokens import token_starts
from app.transcript.scripts import may_break_between
from app.transcript.width import width
from workers.messages import SAMPLE_RATE, Word

_BY_A_PERSON = 1.0  # the probability of a word that a person wrote

# A word that turns up in another segment, further from where it was, is not the same one.
_REACH = 5 * SAMPLE_RATE  # samples

# How many tokens of a segment may take the place of an equal one of another segment.
_MOST_CHOICES = 50


@dataclass(frozen=True, slots=True)
class OldText:
    """A segment before the correction. Joined, its words are its text; none if they are not known."""

    text: str
    words: Sequence[Word]


@dataclass(frozen=True, slots=True)
class NewText:
    """A segment after the correction. Times in samples."""

    text: str
    start: int
    end: int
    replaces: int | None  # number of an old text


@dataclass(frozen=True, slots=True)
class NewWords:
    """The words of a new text. Joined, they are the text."""

    words: tuple[Word, ...]
    origin: int | None  # number of the old text that most of its tokens come from; None: they are new


def new_words(old: Sequence[OldText], new: Sequence[NewText]) -> list[NewWords]:
    """The words of the new texts, each inside its text's time, in order, without overlap.

    A word of the old texts keeps its time and probability, clamped to the text that has it now. Words between
    them share the time that is left there, in proportion to their width.
    """
    before = _Tokens([text.text for text in old])
    after = _Tokens([text.text for text in new])
    kept = kept_tokens(before.tokens, after.tokens)
    _prefer_replaced(kept, before, after, new)
    sources = [_Source(text) for text in old]
    found = []
    for number, text in enumerate(new):
        pieces, origins = _pieces(text, number, before, after, kept, sources)
        origin = origins.most_common(1)[0][0] if origins else None
        found.append(NewWords(_timed(pieces, text.start, text.end), origin))
    return found


class _Tokens:
    """The tokens of texts in a row."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.tokens: list[str] = []
        self.starts = array("L")  # of each token in its text
        self.owners = array("L")  # of each token: the number of its text
        self.ends = array("L", [0])  # of all texts before the first, the second, ...: their tokens
        for number, text in enumerate(texts):
            tokens, starts = token_starts(text)
            self.tokens += tokens
            self.starts.extend(starts)
            self.owners.extend([number] * len(tokens))
            self.ends.append(len(self.tokens))


class _Source:
    """An old text and where its words are."""

    def __init__(self, text: OldText) -> None:
        self.words = text.words
        self.edges = list(accumulate((len(word.text) for word in text.words), initial=0))


def _prefer_replaced(kept: list[int], before: _Tokens, after: _Tokens, new: Sequence[NewText]) -> None:
    """Let a text keep the tokens of the text that it replaces, where the diff chose equal ones of others."""
    last = -1  # the old token of the token before
    for at, was in enumerate(kept):
        if was < 0:
            continue
        replaces = new[after.owners[at]].replaces
        if replaces is not None and before.owners[was] != replaces:
            follower = next((kept[k] for k in range(at + 1, len(kept)) if kept[k] >= 0), len(before.tokens))
            first = max(before.ends[replaces], last + 1)
            end = min(before.ends[replaces + 1], follower, first + _MOST_CHOICES)
            equal = (index for index in range(first, end) if before.tokens[index] == after.tokens[at])
            kept[at] = next(equal, was)
        last = kept[at]


@dataclass(slots=True)
class _Piece:
    """A word of a new text. Its times are those of the old text, or None if it is new."""

    text: str
    start: int | None = None
    end: int | None = None
    probability: float = _BY_A_PERSON
    of: tuple[int, int] | None = None  # numbers of the old text and of its word that this is a part of


def _pieces(
    text: NewText,
    number: int,
    before: _Tokens,
    after: _Tokens,
    kept: Sequence[int],
    sources: Sequence[_Source],
) -> tuple[list[_Piece], Counter[int]]:
    """The words of a new text, and the old texts of its tokens."""
    pieces: list[_Piece] = []
    origins: Counter[int] = Counter()
    done = 0  # characters of the text
    previous = -1  # the old token of the token before
    for at in range(after.ends[number], after.ends[number + 1]):
        token, was = after.tokens[at], kept[at]
        space = text.text[done : after.starts[at]]
        done = after.starts[at] + len(token)
        parts: list[_Piece] = []
        if was >= 0:
            owner = before.owners[was]
            origins[owner] += 1
            parts = _parts(token, before.starts[was], owner, sources[owner])
            if parts and owner != text.replaces and not _is_near(parts[0], text):
                parts = []
        is_next = was == previous + 1 and was > 0
        previous = was if parts else -1
        if not parts:
            if pieces and pieces[-1].of is None and not space and _is_one(pieces[-1].text, token):
                pieces[-1].text += token
            else:
                pieces.append(_Piece(space + token))
            continue
        if is_next and pieces and pieces[-1].of == parts[0].of:
            pieces[-1].text += space + parts[0].text
            pieces[-1].end = parts[0].end
            del parts[0]
        elif space:
            parts[0].text = space + parts[0].text
        pieces += parts
    return pieces, origins


def _is_one(before: str, after: str) -> bool:
    """Whether two neighbouring pieces of text without a space between them are one word."""
    return not may_break_between(before[-1], after[0])


def _is_near(piece: _Piece, text: NewText) -> bool:
    assert piece.start is not None
    assert piece.end is not None
    return piece.end >= text.start - _REACH and piece.start <= text.end + _REACH


def _parts(token: str, start: int, owner: int, source: _Source) -> list[_Piece]:
    """The token that begins at `start` of an old text, as the words that it is made of, or parts of words.

    Empty if the old text has no words.
    """
    words, edges = source.words, source.edges
    if not words:
        return []
    end = start + len(token)
    index = bisect_right(edges, start) - 1
    parts = []
    while index < len(words) and edges[index] < end:
        word = words[index]
        first, last = max(edges[index], start), min(edges[index + 1], end)
        begins, ends = _share(word, first - edges[index], last - edges[index])
        text = token[first - start : last - start]
        if text:
            parts.append(_Piece(text, begins, ends, word.probability, (owner, index)))
        index += 1
    return parts


def _share(word: Word, first: int, last: int) -> tuple[int, int]:
    """The time of a part of a word, by its characters. The spaces at the ends of the word take no time."""
    bare = word.text.strip()
    lead = len(word.text) - len(word.text.lstrip())
    if first <= lead and last >= lead + len(bare):
        return word.start, word.end
    columns = max(width(bare), 1)
    length = word.end - word.start
    begins = word.start + length * width(word.text[lead:first]) // columns
    if last >= lead + len(bare):
        return begins, word.end
    return begins, word.start + length * width(word.text[lead:last]) // columns


def _timed(pieces: Sequence[_Piece], start: int, end: int) -> tuple[Word, ...]:
    """The pieces as words from `start` to `end`. A word may last no time."""
    known = [index for index, piece in enumerate(pieces) if piece.start is not None]
    at = start
    for index in known:
        at = min(max(pieces[index].start or 0, at), end)
        pieces[index].start = at
    limit = end
    for index in reversed(known):
        begins = pieces[index].start or 0
        pieces[index].end = min(max(pieces[index].end or 0, begins), limit)
        limit = begins
    first = 0
    begins = start
    for index in [*known, len(pieces)]:
        ends = end if index == len(pieces) else pieces[index].start or 0
        _spread(pieces[first:index], begins, ends)
        if index < len(pieces):
            first, begins = index + 1, pieces[index].end or 0
    return tuple(Word(piece.text, piece.start or 0, piece.end or 0, piece.probability) for piece in pieces)


def _spread(pieces: Sequence[_Piece], start: int, end: int) -> None:
    """Give the pieces the time from `start` to `end`, in proportion to their width."""
    edges = list(accumulate((width(piece.text.strip()) for piece in pieces), initial=0))
    for piece, first, last in zip(pieces, edges, edges[1:], strict=False):
        piece.start = start + (end - start) * first // max(edges[-1], 1)
        piece.end = start + (end - start) * last // max(edges[-1], 1)
