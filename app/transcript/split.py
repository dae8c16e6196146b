"""Split a segment that is too long for one cue, at the best places. Pure."""

from collections.abc import Iterator, Sequence

from app.transcript.break_points import Break, break_between
from app.transcript.lines import CueStyle, WidthIndex, count_lines
from app.transcript.timed_text import TimedText
from workers.messages import SAMPLE_RATE

Piece = tuple[TimedText, ...]  # the tokens of one cue

# One scale for all that makes a split good or bad. A piece twice as long or short as the others costs
# `_UNEVEN`; after a sentence is worth a good deal of unevenness, and more pieces are worth it only where
# they avoid a poor break.
_PIECE = 60
_UNEVEN = 80
_TOO_SHORT = 50
_BREAK_COST = {Break.SENTENCE: 0, Break.CLAUSE: 60, Break.PHRASE: 110, Break.PLAIN: 150, Break.POOR: 250}
_INSIDE_WORD = 100
_PAUSE = 80  # taken off for a pause of a second, and in proportion for a shorter one


def fits(piece: Sequence[TimedText], style: CueStyle) -> bool:
    """Whether the tokens can be one cue: in time and in its lines."""
    lines = count_lines(WidthIndex([token.text for token in piece]), len(piece), style.max_line_chars)
    return lines <= style.max_lines and piece[-1].end - piece[0].start <= style.max_samples


def split(tokens: Sequence[TimedText], style: CueStyle, language: str) -> list[Piece]:
    """The tokens of a segment in as many pieces as it takes for each to fit, best places first.

    A single token that does not fit is a piece of its own.
    """
    if not tokens:
        return []
    if fits(tokens, style):
        return [tuple(tokens)]
    ruler = WidthIndex([token.text for token in tokens])
    even = _even_chars(tokens, ruler, style)
    total, shortest = len(tokens), style.min_samples
    costs: list[int | None] = [0, *[None] * total]  # of the best pieces that end before each token
    begins = [0] * (total + 1)  # of the last of these pieces
    for begin in range(total):
        before = (costs[begin] or 0) + _PIECE + (_break_cost(tokens, begin, language) if begin else 0)
        for end in _fitting_ends(tokens, ruler, begin, style):
            cost = before + _UNEVEN * (ruler.between(begin, end) - even) ** 2 // even**2
            cost += _TOO_SHORT * (tokens[end - 1].end - tokens[begin].start < shortest)
            best = costs[end]
            if best is None or cost < best:
                costs[end], begins[end] = cost, begin
    return _pieces(tokens, begins)


def _fitting_ends(
    tokens: Sequence[TimedText], ruler: WidthIndex, begin: int, style: CueStyle
) -> Iterator[int]:
    """Where a piece that begins at `begin` may end: after one token always, then as long as it fits."""
    yield begin + 1
    lines, line_begin = 1, begin
    latest = tokens[begin].start + style.max_samples
    for end in range(begin + 2, len(tokens) + 1):
        if ruler.between(line_begin, end) > style.max_line_chars:
            lines, line_begin = lines + 1, end - 1
        if lines > style.max_lines or tokens[end - 1].end > latest:
            return
        yield end


def _pieces(tokens: Sequence[TimedText], begins: Sequence[int]) -> list[Piece]:
    """The pieces, found from the last one back."""
    pieces: list[Piece] = []
    end = len(tokens)
    while end:
        pieces.append(tuple(tokens[begins[end] : end]))
        end = begins[end]
    return pieces[::-1]


def _even_chars(tokens: Sequence[TimedText], ruler: WidthIndex, style: CueStyle) -> int:
    """Width of each piece if all were alike."""
    chars = ruler.between(0, len(tokens))
    by_chars = -(-chars // (style.max_line_chars * style.max_lines))
    by_time = -(-(tokens[-1].end - tokens[0].start) // style.max_samples)
    return max(chars // max(by_chars, by_time, 2), 1)


def _break_cost(tokens: Sequence[TimedText], position: int, language: str) -> int:
    before, after = tokens[position - 1], tokens[position]
    pause = min(after.start - before.end, SAMPLE_RATE)
    cost = _BREAK_COST[break_between(before.text, after.text, language)] - _PAUSE * pause // SAMPLE_RATE
    return max(cost + _INSIDE_WORD * after.inside_word, 0)
