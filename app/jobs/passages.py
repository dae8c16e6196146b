"""The segments of a transcript as the search reads them, and where it finds words in them. Pure.

A line for each segment, compressed together: its id, its first sample, its text, and the words of the text as
queries have them. So a search looks at bytes alone, and need not understand a transcript.
"""

import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from app.jobs.search_terms import comparable_texts
from app.transcript.edited import EditedSegment

MOST_MATCHES = 3
_MOST_LINES = 1000  # that are looked at in one transcript
_LEVEL = 3  # text: higher levels save little


class Sentence(NamedTuple):
    """A segment that has words of a query."""

    segment: str  # its id
    start: int  # samples
    text: str


def pack_passages(segments: Iterable[EditedSegment]) -> bytes:
    """The lines of some segments. Costs CPU time on long texts: let `Helper` call it."""
    segments = list(segments)
    texts = [" ".join(segment.text.split()) for segment in segments]
    lines = "".join(
        f"{segment.id}\t{segment.start}\t{text}\t{comparable}\n"
        for segment, text, comparable in zip(segments, texts, comparable_texts(texts), strict=False)
    )
    return zlib.compress(lines.encode(), _LEVEL)


def find_sentences(content: bytes, terms: Sequence[str]) -> list[Sentence]:
    """The first segments with most of the terms of a query, from `query_terms`; `MOST_MATCHES` at most.

    Call it in a thread.
    """
    lines = zlib.decompress(content)
    present = [term for term in map(str.encode, terms) if term in lines]
    if not present:
        return []
    rarest = min(present, key=lines.count)
    found: dict[int, list[bytes]] = {}  # lines by how many terms they have
    end = 0
    for _ in range(_MOST_LINES):
        at = lines.find(rarest, end)
        if at < 0 or len(found.get(len(present), ())) == MOST_MATCHES:
            break
        end = lines.index(b"\n", at)
        line = lines[lines.rfind(b"\n", 0, at) + 1 : end]
        words = line.rpartition(b"\t")[2]
        if rarest in words:
            found.setdefault(sum(term in words for term in present), []).append(line)
    best = found[max(found)][:MOST_MATCHES] if found else []
    columns = (line.decode().split("\t") for line in best)
    return [Sentence(segment, int(start), text) for segment, start, text, _ in columns]
