"""The subtitles of a transcript as JSON: where their text comes from, and which limits they break.

`Helper` calls this: its process starts anew after a pause, and this module imports little.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import Any

from pydantic_core import to_json

from app.api.transcripts.correction_bodies import parse_correction
from app.common.errors import InvalidInput
from app.common.options import Options
from app.jobs.serialization import PackedTranscript, identified, unpack_transcript
from app.server.large_bodies import Compressed, compress
from app.transcript.corrections import correct
from app.transcript.cues.problems import columns_per_second, limits, problems
from app.transcript.edited import EditedSegment, letter_places, mark_entries
from app.transcript.formats.common import FileCue
from app.transcript.rendering import file_cues


def cues_document(
    base: PackedTranscript,
    body: bytes | None,
    options: Options,
    file_format: str,
    span_s: tuple[float, float],
) -> bytes | Compressed:
    """The document of the cues that overlap a span, see `schemas.Cues`.

    They are those of a revision, or of what the `body` of a request makes of it. Raises InvalidInput,
    TooLarge and UnsuitableFormat.
    """
    transcript = unpack_transcript(base.content)
    segments = identified(transcript)
    if body is not None:
        edits = parse_correction(body)
        if isinstance(edits, int):
            raise InvalidInput("The body has no `segments`, and must have all of them.", param="segments")
        segments = correct(segments, edits, base.revision + 1, transcript.samples, transcript.clips).segments
    cues, style = file_cues(replace(transcript, segments=segments), options, file_format)
    found = list(cues)
    shown = [None, *(cue.cue for cue in found), None]
    index = {segment.id: at for at, segment in enumerate(segments)}
    # A segment may have many cues.
    places_of = cache(lambda segment_id: letter_places(segments[index[segment_id]]))
    entries = []
    for at, cue in enumerate(found):
        start, end = (round(float(time / cue.rate), 3) for time in (cue.start, cue.end))
        if end > span_s[0] and start < span_s[1]:
            broken = problems(cue.cue, style.of(cue.language), shown[at], shown[at + 2])
            entry = {
                "number": at + 1,
                "start": start,
                "end": end,
                "lines": cue.lines,
                "speakers": [speaker or None for speaker in cue.speakers],
                "language": cue.language or transcript.text_language,
                "cps": round(columns_per_second(cue.cue), 1),
                "segments": list(_sources(cue, segments, index, places_of)),
                "problems": [problem._asdict() for problem in broken],
            }
            entries.append(to_json(entry))  # each on its own, as segments are
    head = to_json({"revision": base.revision, "total": len(found), "limits": limits(style)})
    return compress(head[:-1] + b',"cues":[' + b",".join(entries) + b"]}")


def _sources(
    cue: FileCue,
    segments: Sequence[EditedSegment],
    index: Mapping[str, int],
    places_of: Callable[[str], Sequence[int]],
) -> Iterator[dict[str, Any]]:
    """The parts of segments that the text of a cue comes from; `places_of`: of the letters of a segment."""
    for segment_id, units in groupby(cue.units, lambda unit: unit.segment):
        letters = [letter for unit in units for letter in range(*unit.letters)]
        if letters:
            at, places = index[segment_id], places_of(segment_id)
            first, last = letters[0], letters[-1]
            marks = segments[at].marks
            inside = marks[bisect_left(marks, (first,)) : bisect_left(marks, (last + 1,))]
            part = {"id": segment_id, "index": at, "from": places[first], "to": places[last] + 1}
            listed = mark_entries((places[letter], mark) for letter, mark in inside)
            yield part | {"marks": listed} if listed else part
