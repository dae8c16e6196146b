"""The subtitles of a transcript as JSON: where their text comes from, and which limits they break.

`Helper` calls this: its process starts anew after a pause, and this module imports little.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
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
from app.transcript.edited import EditedSegment, letter_places, listed_marks, mark_entries
from app.transcript.formats.common import FileCue
from app.transcript.rendering import file_cues


def cues_document(
    base: PackedTranscript,
    body: bytes | None,
    options: Options,
    file_format: str,
    start_s: float | None,
    end_s: float | None,
) -> bytes | Compressed:
    """The document of the cues that overlap a span, see `schemas.Cues`: of a revision, or a correction of it.

    `body`: of a request that corrects it. Raises InvalidInput, TooLarge and UnsuitableFormat.
    """
    transcript = unpack_transcript(base.content)
    segments = identified(transcript)
    if body is not None:
        edits = parse_correction(body)
        if isinstance(edits, int):
            raise InvalidInput(
                "The body has no segments. Send a JSON object with `segments`; GET …/cues?revision= has the "
                "subtitles of a revision.",
                param="segments",
            )
        segments = correct(segments, edits, base.revision + 1, transcript.samples, transcript.clips).segments
    cues, style = file_cues(replace(transcript, segments=segments), options, file_format)
    found = list(cues)
    sources = _Sources(segments)
    entries = []
    for at, cue in enumerate(found):
        start, end = (round(float(time / cue.rate), 3) for time in (cue.start, cue.end))
        if end <= (start_s or 0.0) or start >= (math.inf if end_s is None else end_s):
            continue
        before, after = (found[near].cue if 0 <= near < len(found) else None for near in (at - 1, at + 1))
        broken = problems(cue.cue, style.of(cue.language), before, after)
        entry = {
            "number": at + 1,
            "start": start,
            "end": end,
            "lines": cue.lines,
            "speakers": [speaker or None for speaker in cue.speakers],
            "language": cue.language or transcript.text_language,
            "cps": round(columns_per_second(cue.cue), 1),
            "segments": list(sources.of(cue)),
            "problems": [problem._asdict() for problem in broken],
        }
        entries.append(to_json(entry))  # each on its own, as segments are
    head = to_json({"revision": base.revision, "total": len(found), "limits": limits(style)})
    return compress(head[:-1] + b',"cues":[' + b",".join(entries) + b"]}")


class _Sources:
    """Which parts of segments the text of a cue comes from."""

    def __init__(self, segments: Sequence[EditedSegment]) -> None:
        self._segments = segments
        self._index: Mapping[str, int] = {segment.id: at for at, segment in enumerate(segments)}
        self._places = cache(lambda index: letter_places(segments[index]))

    def of(self, cue: FileCue) -> Iterator[dict[str, Any]]:
        for segment_id, group in groupby(cue.units, lambda unit: unit.segment):
            letters = [letter for unit in group for letter in range(*unit.letters)]
            if not letters:
                continue
            index = self._index[segment_id]
            places = self._places(index)
            part = {
                "id": segment_id,
                "index": index,
                "from": places[letters[0]],
                "to": places[letters[-1]] + 1,
            }
            marks = listed_marks(self._segments[index])
            inside = [mark for mark in marks if part["from"] <= mark[0] < part["to"]]
            yield part | {"marks": mark_entries(inside)} if inside else part
