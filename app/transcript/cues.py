"""Segments to cues: what is shown, in which lines, from when to when. Pure.

A cue is led by its segment: it begins and ends with it, within the speech that was found. Word times
matter only where a segment is split.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.transcript.break_points import ends_sentence, may_join
from app.transcript.lines import MIN_GAP, SHORTEST_CUE, CueStyle, break_lines, width
from app.transcript.split import Piece, fits, split
from app.transcript.timed_text import tokens
from workers.messages import SAMPLE_RATE, Segment, Span

__all__ = ["Cue", "CueStyle", "shape_cues"]

# Neighbours are joined only across less than this, and only if one of them is this short.
_JOIN_GAP = SAMPLE_RATE // 5  # samples
_JOIN_WORDS = 2


@dataclass(frozen=True, slots=True)
class Cue:
    """What is shown at one time. Times in samples of the recording."""

    start: int
    end: int
    lines: tuple[str, ...]  # in logical order, none empty


def shape_cues(
    segments: Iterable[Segment],
    speech: Sequence[Span],
    style: CueStyle,
    language: str,
    samples: int | None = None,
) -> Iterator[Cue]:
    """The cues of a recording, in order, with a gap of two frames at least between them; made one by one.

    `segments` as `timeline.merge` gives them; `speech`: where speech was found, ordered, in samples;
    `language`: ISO 639-1 code of the text; `samples`: length of the recording, after which no cue stays.
    Each word of the segments is in one cue, in order. No cue is longer than `style.max_cue_s`; short ones
    stay into the silence after them, as long as `style.min_cue_s` and `style.max_cps` ask.
    """
    pieces = (piece for segment in segments for piece in split(tokens(segment, speech), style, language))
    return _timed(_join_fragments(pieces, style), style, language, samples)


def _timed(pieces: Iterable[Piece], style: CueStyle, language: str, samples: int | None) -> Iterator[Cue]:
    """The pieces as cues. Each starts with its first token, unless that leaves the cue before it no time."""

    def cue(start: int, piece: Piece, limit: int) -> Cue:
        lines = break_lines([token.text for token in piece], style.max_line_chars, language)
        return Cue(start, _end(start, piece[-1].end, limit, lines, style), lines)

    before: tuple[int, Piece] | None = None
    for piece in pieces:
        start = piece[0].start
        if before is not None:
            start = max(start, before[0] + SHORTEST_CUE + MIN_GAP)
            yield cue(*before, start - MIN_GAP)
        before = start, piece
    if before is not None:
        limit = before[0] + style.max_samples
        yield cue(*before, limit if samples is None else min(limit, samples))


def _join_fragments(pieces: Iterable[Piece], style: CueStyle) -> Iterator[Piece]:
    """The pieces, with those joined to their neighbour that are fragments of its sentence."""
    joined: Piece | None = None
    for piece in pieces:
        if joined is not None and _belong_together(joined, piece, style):
            joined = joined + piece
            continue
        if joined is not None:
            yield joined
        joined = piece
    if joined is not None:
        yield joined


def _belong_together(before: Piece, after: Piece, style: CueStyle) -> bool:
    """Whether one of them is a fragment, no sentence ends and nobody pauses between them, and both fit."""
    return (
        after[0].start - before[-1].end <= _JOIN_GAP
        and (_is_fragment(before, style) or _is_fragment(after, style))
        and not ends_sentence(before[-1].text)
        and may_join(before[-1].text, after[0].text)
        and fits(before + after, style)
    )


def _is_fragment(piece: Piece, style: CueStyle) -> bool:
    return len(piece) <= _JOIN_WORDS and piece[-1].end - piece[0].start < style.min_samples


def _end(start: int, spoken_until: int, limit: int, lines: Sequence[str], style: CueStyle) -> int:
    """When a cue ends: when it has been spoken and can have been read, but by the limit at the latest."""
    chars = sum(map(width, lines)) + len(lines) - 1
    wanted = max(spoken_until, start + style.min_samples, start + style.reading_samples(chars))
    return max(min(wanted, start + style.max_samples, limit), start + SHORTEST_CUE)
