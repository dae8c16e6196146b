"""The fields of requests that say whose voices are known."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import AfterValidator, BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError

from app.errors import InvalidInput
from app.options import MAX_SPEAKER_CHARS, Options
from app.speakers.labelling import KnownSpeaker

if TYPE_CHECKING:
    from app.transcription.service import TranscriptionService

KNOWN_NAMES = "known_speaker_names[]"
KNOWN_REFERENCES = "known_speaker_references[]"
LARGE_FIELDS = frozenset({KNOWN_REFERENCES, "known_speaker_references"})

MAX_KNOWN_SPEAKERS = 10
MAX_REFERENCE_CHARS = 4 << 20  # ten seconds of stereo at 48 kHz, as a data URL, take 2.6 million


def _printable(name: str) -> str:
    if not name.strip() or not name.strip().isprintable():
        raise PydanticCustomError("speaker_name", "must be names of printable characters")
    return name.strip()


def _data_url(reference: str) -> str:
    if not reference.startswith("data:"):
        raise PydanticCustomError("data_url", "must be data URLs, such as data:audio/wav;base64,…")
    return reference


Name = Annotated[str, Field(min_length=1, max_length=MAX_SPEAKER_CHARS), AfterValidator(_printable)]
Reference = Annotated[
    str,
    Field(max_length=MAX_REFERENCE_CHARS, json_schema_extra={"pattern": "^data:"}),
    AfterValidator(_data_url),
]


class KnownSpeakerFields(Options):
    """Voices that have names, for `diarize`."""

    known_speaker_names: Annotated[list[Name], Field(alias=KNOWN_NAMES, max_length=MAX_KNOWN_SPEAKERS)] = (
        Field(
            default_factory=list,
            description="Names of people who may speak, as many as there are references. Implies `diarize`.",
        )
    )
    known_speaker_references: Annotated[
        list[Reference], Field(alias=KNOWN_REFERENCES, max_length=MAX_KNOWN_SPEAKERS)
    ] = Field(
        default_factory=list,
        description="Their voices, in the same order: data URLs of recordings of 2 to 10 s, such as "
        "`data:audio/wav;base64,…`.",
    )

    @classmethod
    def asks_for_speakers(cls, fields: Mapping[str, object]) -> bool:
        """Whether other fields than `diarize` need it."""
        return bool(fields.get(KNOWN_NAMES) or fields.get("known_speaker_names"))

    @model_validator(mode="after")
    def _check_known(self) -> Self:
        names, references = self.known_speaker_names, self.known_speaker_references
        if len(names) != len(references):
            raise InvalidInput(
                f"Known speakers: names: {len(names)}, references: {len(references)}. Send one reference for "
                "each name.",
                param=KNOWN_REFERENCES,
            )
        for name in names:
            if names.count(name) > 1:
                raise InvalidInput(
                    f"The name {name!r} of a known speaker is there twice: give each another name.",
                    param=KNOWN_NAMES,
                )
        if names and not self.diarize:
            raise InvalidInput(
                "Known speakers are found by their voices, with `diarize`, which this request rules out. "
                "Leave out `diarize=false` and `channels=separate`, or the known speakers.",
                param=KNOWN_NAMES,
            )
        return self


async def known_speakers(
    service: "TranscriptionService", fields: KnownSpeakerFields
) -> Sequence[KnownSpeaker]:
    """The voices that a request knows. Raises as `MediaService.known_speakers` does."""
    if not fields.known_speaker_names:
        return ()
    return await service.media.known_speakers(fields.known_speaker_names, fields.known_speaker_references)


def with_implied(form: type[BaseModel], fields: Mapping[str, object]) -> dict[str, object]:
    """The fields of a request, with `diarize` if it is absent and others need it."""
    asked = issubclass(form, KnownSpeakerFields) and form.asks_for_speakers(fields)
    return {**({"diarize": True} if asked and fields.get("channels") != "separate" else {}), **fields}
