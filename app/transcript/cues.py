"""Segments to cues: what is shown, in which lines, from when to when. Pure.

A cue is led by its segment: it begins and ends with it, within the speech that was found. Word times
matter only where a segment is split.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.transcript.breaks import ends_sentence, may_join
from app.transcript.lines import break_lines
from app.transcript.split import Piece, fits, split
from app.transcript.style import MIN_GAP, SHORTEST_CUE, CueStyle
from app.transcript.tokens import tokens
from app.transcript.width import width
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
    segments: Sequence[Segment],
    speech: Sequence[Span],
    style: CueStyle,
    language: str,
    samples: int | None = None,
) -> tuple[Cue, ...]:
    """The cues of a recording, in order, with a gap of two frames at least between them.

    `segments` as `timeline.merge` gives them; `speech`: where speech was found, ordered, in samples;
    `language`: ISO 639-1 code of the text; `samples`: length of the recording, after which no cue stays.
    Each word of the segments is in one cue, in order. No cue is longer than `style.max_cue_s`; short ones
    stay into the silence after them, as long as `style.min_cue_s` and `style.max_cps` ask.
    """
    pieces = [piece for segment in segments for piece in split(tokens(segment, speech), style, language)]
    pieces = _join_fragments(pieces, style)
    lines = [break_lines([token.text for token in piece], style.max_line_chars, language) for piece in pieces]
    starts = _starts(pieces)
    limits = [*(start - MIN_GAP for start in starts), starts[-1] + style.max_samples if starts else 0][1:]
    if starts and samples is not None:
        limits[-1] = min(limits[-1], samples)
    return tuple(
        Cue(start, _end(start, piece[-1].end, limit, shown, style), shown)
        for start, piece, limit, shown in zip(starts, pieces, limits, lines, strict=True)
    )


def _join_fragments(pieces: Sequence[Piece], style: CueStyle) -> list[Piece]:
    """The pieces, with those joined to their neighbour that are fragments of its sentence."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and _belong_together(joined[-1], piece, style):
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


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


def _starts(pieces: Sequence[Piece]) -> list[int]:
    """When each cue starts: with its first token, but for one that would leave the cue before no time."""
    starts: list[int] = []
    for piece in pieces:
        earliest = starts[-1] + SHORTEST_CUE + MIN_GAP if starts else 0
        starts.append(max(piece[0].start, earliest))
    return starts


def _end(start: int, spoken_until: int, limit: int, lines: Sequence[str], style: CueStyle) -> int:
    """When a cue ends: when it has been spoken and can have been read, but by the limit at the latest."""
    chars = sum(map(width, lines)) + len(lines) - 1
    wanted = max(spoken_until, start + style.min_samples, start + style.reading_samples(chars))
    return max(min(wanted, start + style.max_samples, limit), start + SHORTEST_CUE)
