"""The body of a request that finds the speakers of a transcript again, or renames them."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from app.api.transcripts.correction_bodies import MAX_ID_CHARS, clean_line
from app.common.errors import InvalidInput
from app.common.options import MAX_SPEAKER_CHARS, MAX_SPEAKERS
from app.server.errors import invalid_input
from app.server.json_bodies import invalid_json, no_object
from app.transcript.speakers.labelling import SpeakerCount
from app.transcript.speakers.relabelling import SpeakerCorrection

MAX_GROUPS = 1000
MAX_GROUP = 10_000  # segments

Count = Annotated[int, Field(strict=True, ge=1, le=MAX_SPEAKERS)]
SegmentId = Annotated[str, Field(strict=True, min_length=1, max_length=MAX_ID_CHARS)]
Label = Annotated[str, Field(min_length=1, max_length=MAX_SPEAKER_CHARS)]
Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_SPEAKER_CHARS),
    BeforeValidator(clean_line),
]
Same = Annotated[list[SegmentId], FailFast(), Field(min_length=1, max_length=MAX_GROUP)]
Different = Annotated[list[SegmentId], FailFast(), Field(min_length=2, max_length=MAX_SPEAKERS)]


class SpeakersBody(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    num_speakers: Count | None = Field(None, description="How many people speak.")
    min_speakers: Count | None = Field(None, description="The fewest people that may speak.")
    max_speakers: Count | None = Field(None, description="The most people that may speak.")
    same: Annotated[list[Same], FailFast(), Field(max_length=MAX_GROUPS)] = Field(
        default_factory=list, description="Lists of ids of segments. Those of a list have one speaker."
    )
    different: Annotated[list[Different], FailFast(), Field(max_length=MAX_GROUPS)] = Field(
        default_factory=list, description="Lists of ids of segments. Those of a list have a speaker each."
    )
    names: Annotated[dict[Label, Name], Field(max_length=MAX_SPEAKERS)] | None = Field(
        None,
        description="A name for each label, such as `S1`, once the speakers are found. Alone, it only "
        "renames.",
    )

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        least, most = self.min_speakers, self.max_speakers
        if self.num_speakers is not None and (least or most):
            raise PydanticCustomError(
                "two_counts", "`num_speakers` cannot be combined with `min_speakers` and `max_speakers`"
            )
        if least and most and most < least:
            raise PydanticCustomError("most_below_least", "`max_speakers` must be at least `min_speakers`")
        return self

    @property
    def correction(self) -> SpeakerCorrection:
        """What the body asks for: to find the speakers anew unless it only renames them."""
        least, most = self.min_speakers, self.max_speakers
        if self.num_speakers is not None:
            least = most = self.num_speakers
        renames = self.names is not None and not (least or most or self.same or self.different)
        return SpeakerCorrection(
            None if renames else SpeakerCount(least or 1, most),
            tuple(map(tuple, self.same)),
            tuple(map(tuple, self.different)),
            self.names or {},
        )


def parse_speakers(body: bytes) -> SpeakerCorrection:
    """What a body asks for. Raises InvalidInput."""
    try:
        return SpeakersBody.model_validate_json(body).correction
    except ValidationError as error:
        raise _invalid(error.errors(include_url=False, include_input=False)[0]) from None


def _invalid(problem: Mapping[str, Any]) -> InvalidInput:
    if problem["type"] == "json_invalid":
        return invalid_json(problem["ctx"]["error"])
    if problem["type"] == "model_type":
        return no_object('{"num_speakers": 2}')
    return invalid_input([problem], SpeakersBody.model_fields)
