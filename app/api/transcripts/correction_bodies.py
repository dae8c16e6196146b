"""The body of a request that corrects a transcript: its segments, or the number of an earlier revision.

`Helper` parses it, see `correction_steps`: this module imports little.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, ValidationError

from app.common.errors import InvalidInput
from app.common.options import WHOLE
from app.server.json_bodies import documented_body, fault_of_field, invalid_json, no_object
from app.transcript.corrections import MAX_SEGMENTS, SegmentEdit
from app.transcript.edited import Mark
from app.transcript.text.scripts import with_few_marks

MAX_TEXT_CHARS = 10_000  # of a segment
MAX_SPEAKER_CHARS = 100
MAX_ID_CHARS = 100
MAX_MARKS = 1000  # of a segment
MAX_TIME_S = 1e7  # longer than any recording
MAX_REVISION = 2**31 - 1

_BREAKS = re.compile(r"[\t-\r\x1c-\x1f\x85\u2028\u2029]+")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def clean_line(text: object) -> object:
    """A text in one line: a space for line breaks, nothing for other control characters and excess marks."""
    return with_few_marks(_CONTROLS.sub("", _BREAKS.sub(" ", text))) if isinstance(text, str) else text


RevisionNumber = Literal["original"] | Annotated[int, Field(ge=0, le=MAX_REVISION), WHOLE]
Seconds = Annotated[float, Field(strict=True, ge=0, le=MAX_TIME_S, allow_inf_nan=False)]
Line = Annotated[str, BeforeValidator(clean_line)]


class _Body(BaseModel):
    """Unknown fields are ignored: clients may send what they got."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class CueMark(_Body):
    at: Annotated[int, Field(strict=True, ge=0, le=MAX_TEXT_CHARS)] = Field(
        description="How many characters of the segment's `text` stand before it. At 0, it is between the "
        "segment before and this one."
    )
    kind: Mark = Field(description="`break`: a subtitle begins here. `join`: none ends here.")


class CorrectedSegment(_Body):
    id: str | None = Field(
        None, max_length=MAX_ID_CHARS, description="Of the segment that it replaces. Without one it is new."
    )
    start: Seconds = Field(description="Seconds from the recording's start.")
    end: Seconds = Field(description="Seconds from the recording's start.")
    text: Line = Field(min_length=1, max_length=MAX_TEXT_CHARS)
    speaker: Line | None = Field(None, max_length=MAX_SPEAKER_CHARS)
    marks: list[CueMark] | None = Field(
        None,
        max_length=MAX_MARKS,
        description="Where subtitles begin, and where none does. Without a list, those that are there now "
        "stay with their words.",
    )


class CorrectedSegments(_Body):
    segments: Annotated[list[CorrectedSegment], FailFast()] = Field(
        max_length=MAX_SEGMENTS, description="All segments of the transcript, ordered by their start."
    )


class Restoration(_Body):
    revision: RevisionNumber = Field(description="The revision that is stored again, as the newest one.")


def parse_correction(body: bytes) -> list[SegmentEdit] | int:
    """The segments of a body, or the number of the revision to restore. Raises InvalidInput."""
    try:
        document = CorrectedSegments.model_validate_json(body)
    except ValidationError as error:
        return _parse_restoration(body, error)
    return [_edit(segment) for segment in document.segments]


def _parse_restoration(body: bytes, error: ValidationError) -> int:
    """The number of the revision, if the error is that there are no segments."""
    problem = error.errors(include_url=False, include_input=False)[0]
    if problem["type"] == "missing" and problem["loc"] == ("segments",):
        try:
            return revision_number(Restoration.model_validate_json(body, strict=True).revision)
        except ValidationError as other:
            problem = other.errors(include_url=False, include_input=False)[0]
            if problem["type"] == "missing":
                raise InvalidInput(
                    "The body has no segments. Send a JSON object with `segments`, or with the `revision` "
                    "to restore.",
                    param="segments",
                ) from None
    raise _invalid(problem)


def revision_number(revision: int | str) -> int:
    """The number of a revision, which may be called `original`."""
    return 0 if isinstance(revision, str) else revision


def _edit(segment: CorrectedSegment) -> SegmentEdit:
    speaker = (segment.speaker or "").strip() or None
    marks = None if segment.marks is None else tuple((mark.at, mark.kind) for mark in segment.marks)
    times = (_ms(segment.start), _ms(segment.end))
    return SegmentEdit(*times, segment.text, segment.id, speaker, marks)


def _ms(time_s: float) -> int:
    return round(time_s * 1000)


def _invalid(problem: Any) -> InvalidInput:
    """pydantic's error. `param` is the segment or the field at fault."""
    if problem["type"] == "json_invalid":
        return invalid_json(problem["ctx"]["error"])
    match problem["loc"]:
        case ():
            return no_object('{"segments": […]}')
        case ("segments", int(index), *names):
            segment = f"segments[{index}]"
            field = ".".join([segment, *map(str, names)])
            return InvalidInput(f"`{field}`: {fault_of_field(problem)}.", param=segment)
        case (name, *_):
            return InvalidInput(f"`{name}`: {fault_of_field(problem)}.", param=str(name))
    raise AssertionError


def correction_body(*, restores: bool = True) -> dict[str, Any]:
    """OpenAPI's description of the body. `restores`: it may name a revision instead of segments."""
    segments = CorrectedSegments.model_json_schema()
    models = segments.pop("$defs")
    segments["properties"]["segments"]["items"] = models["CorrectedSegment"]
    models["CorrectedSegment"]["properties"]["marks"]["anyOf"][0]["items"] = models["CueMark"]
    return documented_body({"anyOf": [segments, Restoration.model_json_schema()]} if restores else segments)
