"""The subtitles of a transcript as JSON: where their text comes from, and which limits they break.

`Helper` calls this: its process starts anew after a pause, and this module imports little.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
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
from app.transcript.edited import EditedSegment, letter_places, listed_marks, mark_entries
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
                "segments": list(_sources(cue, segments, index)),
                "problems": [problem._asdict() for problem in broken],
            }
            entries.append(to_json(entry))  # each on its own, as segments are
    head = to_json({"revision": base.revision, "total": len(found), "limits": limits(style)})
    return compress(head[:-1] + b',"cues":[' + b",".join(entries) + b"]}")


def _sources(
    cue: FileCue, segments: Sequence[EditedSegment], index: dict[str, int]
) -> Iterator[dict[str, Any]]:
    """The parts of segments that the text of a cue comes from."""
    for segment_id, units in groupby(cue.units, lambda unit: unit.segment):
        letters = [letter for unit in units for letter in range(*unit.letters)]
        if letters:
            segment = segments[index[segment_id]]
            places = letter_places(segment)
            first, end = places[letters[0]], places[letters[-1]] + 1
            marks = [mark for mark in listed_marks(segment) if first <= mark[0] < end]
            part = {"id": segment_id, "index": index[segment_id], "from": first, "to": end}
            yield part | {"marks": mark_entries(marks)} if marks else part
