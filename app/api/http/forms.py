"""The fields of the endpoints that receive recordings: models that check a request and document it."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from app.api.jobs.details import Notes, Tags, Title
from app.common.errors import InvalidInput
from app.common.options import MAX_SPEAKER_CHARS, Options, Text
from app.intake.uploads import Fields, Upload
from app.server.errors import NOTHING, invalid_fields, validated
from app.server.json_bodies import documented_body
from app.transcript.speakers.labelling import KnownSpeaker
from app.transcript.term_list import EXAMPLE, MAX_HOTWORDS, parse_terms, with_hotwords
from app.transcript.terms import Term

if TYPE_CHECKING:
    from app.recording.service import TranscriptionService

AudioFile = Annotated[Upload, WithJsonSchema({"type": "string", "format": "binary"})]

GRANULARITIES = "timestamp_granularities[]"
INCLUDE = "include[]"
KEYWORDS = "keywords[]"
KNOWN_NAMES = "known_speaker_names[]"
KNOWN_REFERENCES = "known_speaker_references[]"
LARGE_FIELDS = frozenset({KNOWN_REFERENCES, "known_speaker_references"})

MAX_KNOWN_SPEAKERS = 10
MAX_REFERENCE_CHARS = 4 << 20  # ten seconds of stereo at 48 kHz, as a data URL, take 2.6 million
_FORMAT_OF_RESULT = "choose the format of its result, with `GET /v1/jobs/{id}/result?format=srt`"
# Fields that may be repeated, each with `[]` after its name or without.
LISTS = (GRANULARITIES, INCLUDE, KEYWORDS, KNOWN_NAMES, KNOWN_REFERENCES, "languages", "tags")
# Formats that not all paths have.
_PLACES = {
    "diarized_json": "`/v1/audio/transcriptions` has it; `verbose_json` and segments of jobs have speakers",
    "text": "`json` has the text alone, and `txt` a line for each segment",
    "verbose_json": "`/v1/audio/transcriptions` has it, and so have jobs",
}


def spellings(name: str) -> tuple[str, ...]:
    """The names by which a form may have one of its fields."""
    return (name.removesuffix("[]"), f"{name.removesuffix('[]')}[]") if name in LISTS else (name,)


def _or_elsewhere(value: Any, validate: ValidatorFunctionWrapHandler) -> object:
    try:
        return validate(value)
    except ValidationError:
        if value not in _PLACES:
            raise
        raise PydanticCustomError(
            "elsewhere", "`{name}` is not here: {place}", {"name": value, "place": _PLACES[value]}
        ) from None


ELSEWHERE = WrapValidator(_or_elsewhere)  # says of a format that its path does not have which one does


class FormFields(BaseModel):
    """The fields of a request. Unknown ones are ignored, and `note_unused` names them."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    fixed: ClassVar[Mapping[str, object]] = {}  # fields that the endpoint sets itself
    advice: ClassVar[Mapping[str, str]] = {}  # what to do instead of sending one of these


def _terms_text(value: object) -> object:
    """The value of `terms` as a form has it."""
    return json.dumps(value) if isinstance(value, bool | list | dict) else value


def _terms(text: str | None) -> tuple[Term, ...] | bool:
    """The terms of a request, or whether those of its owner count. Raises ValueError."""
    if text is None or text.strip().lower() in ("true", "1"):
        return True
    return False if text.strip().lower() in ("false", "0") else parse_terms(text)


def _check_terms(text: str | None) -> str | None:
    try:
        _terms(text)
    except ValueError as error:
        raise PydanticCustomError(
            "terms",
            "must be true, false, or JSON as {example}: {fault}",
            {"example": EXAMPLE, "fault": str(error)},
        ) from None
    return text


class RequestFields(FormFields, Options):
    """The fields of a request with all options of a transcription."""

    terms: Annotated[Text, BeforeValidator(_terms_text), AfterValidator(_check_terms)] = Field(
        None,
        description="`false`: names and terms of `/v1/terms` are not replaced. Or others for this request "
        "alone, in the same JSON.",
    )
    terms_as_hotwords: bool = Field(
        False,
        description=f"The first {MAX_HOTWORDS} terms are `hotwords`, too. Whisper may skip text after many.",
    )

    def terms_of(self, owners: tuple[Term, ...]) -> tuple[Term, ...]:
        """The terms that count; `owners`: if the request names no others."""
        chosen = _terms(self.terms)
        return chosen if isinstance(chosen, tuple) else owners if chosen else ()

    def options_with(self, terms: tuple[Term, ...]) -> Options:
        """The request's options, with terms as hot words if it asks for that."""
        return with_hotwords(self.options, terms) if self.terms_as_hotwords else self.options

    @property
    def options(self) -> Options:
        """The request's options. They have been checked, as fields of this model."""
        return Options.model_construct(**{name: getattr(self, name) for name in Options.model_fields})


class QueryFields(RequestFields):
    """The parameters of a query. Blank values count as absent."""

    @model_validator(mode="before")
    @classmethod
    def _drop_blanks(cls, fields: Mapping[str, object]) -> dict[str, object]:
        return {name: value for name, value in fields.items() if not isinstance(value, str) or value.strip()}


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

    implying_formats: ClassVar[Collection[str]] = ()  # values of `response_format` that imply `diarize`

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


class JobFields(QueryFields):
    """The fields of a job, for every kind of request body. Unknown ones are refused."""

    advice: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("format", "output", "output_format", "response_format"), _FORMAT_OF_RESULT),
        **dict.fromkeys(spellings(GRANULARITIES), "send `word_timestamps=true`"),
        **dict.fromkeys(spellings(INCLUDE), "`GET /v1/jobs/{id}/segments` has the probability of each word"),
        **dict.fromkeys(spellings(KEYWORDS), "send `hotwords`, separated by commas"),
        "stream": "follow the job with `GET /v1/jobs/{id}/events`",
    }

    model: str = Field("", max_length=256, description="A model of `/v1/models`; the default one if absent.")
    webhook_url: Text = Field(
        None, max_length=2048, description="URL that is called when the job ends, and after each correction."
    )
    filename: Text = Field(
        None, max_length=255, description="Name of the recording, if the request has no other."
    )
    title: Title = None
    notes: Notes = None
    tags: Tags = []
    title_from_text: bool = Field(
        False, description="Without a title, the first words of the transcript become it."
    )


class JobForm(JobFields, KnownSpeakerFields):
    model_config = ConfigDict(extra="forbid")

    file: AudioFile = Field(description="The recording, in any format that FFmpeg reads.")


class JobSource(JobFields, KnownSpeakerFields):
    """A JSON document that says where the recording is."""

    model_config = ConfigDict(extra="forbid", validate_by_name=True)

    url: str = Field("", max_length=2048, description="URL of the recording.")
    upload: str = Field(
        "", max_length=64, description="A complete resumable upload: the last part of its Location."
    )

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if bool(self.url) == bool(self.upload):
            raise InvalidInput(
                "Name the recording with either `url` or `upload`: "
                + ("both were sent." if self.url else "neither was sent."),
                param="upload" if self.url else "url",
            )
        return self


F = TypeVar("F", bound=FormFields)


def parse(form: type[F], fields: Fields, file: Upload | None, defaults: Mapping[str, Any] = NOTHING) -> F:
    """The checked fields of a request, with `defaults` for absent ones. Raises InvalidInput."""
    return validated(form, _values(form, fields, defaults) | ({"file": file} if file else {}))


def check_early(
    form: type[RequestFields],
    service: "TranscriptionService",
    fields: Fields,
    defaults: Mapping[str, Any] = NOTHING,
) -> None:
    """Check the fields that arrived before the file, and whether the models can do what they ask for.

    Raises InvalidInput and UnknownModel.
    """
    values = check_present(form, fields, defaults)
    options = Options.model_validate(values)
    task, language = options.task, options.language
    if "model" not in values:  # it may follow the file
        task, language = "transcribe", None
    service.fleet.catalogue.resolve(str(values.get("model", "")).strip(), task, language)
    if options.diarize:
        service.media.speaker_models.check()


def check_present(
    form: type[FormFields], fields: Fields, defaults: Mapping[str, Any] = NOTHING
) -> Mapping[str, object]:
    """Check the fields that arrived before the file. More may follow, so none is missing yet.

    Returns their values. Raises InvalidInput.
    """
    values = _values(form, fields, defaults)
    try:
        form.model_validate(values)
    except ValidationError as error:
        if problems := [one for one in error.errors(include_url=False) if one["type"] != "missing"]:
            raise invalid_fields(form, problems) from None
    return values


def with_implied(form: type[FormFields], fields: Mapping[str, object]) -> dict[str, object]:
    """The fields of a request, with `diarize` if it is absent and others need it."""
    if not issubclass(form, KnownSpeakerFields) or fields.get("channels") == "separate":
        return dict(fields)
    names = fields.get(KNOWN_NAMES) or fields.get("known_speaker_names")
    asked = names or fields.get("response_format") in form.implying_formats
    return {**({"diarize": True} if asked else {}), **fields}


async def known_speakers(service: "TranscriptionService", fields: FormFields) -> Sequence[KnownSpeaker]:
    """The voices that a request knows. Raises as `MediaService.known_speakers` does."""
    if not isinstance(fields, KnownSpeakerFields) or not fields.known_speaker_names:
        return ()
    return await service.media.known_speakers(fields.known_speaker_names, fields.known_speaker_references)


def _values(form: type[FormFields], fields: Fields, defaults: Mapping[str, Any]) -> dict[str, object]:
    """The fields of a form, for pydantic, without blank values; the last one of a repeated field.

    With `defaults` for absent ones, and what they imply.
    """
    filled = {name: [value for value in values if value.strip()] for name, values in fields.items()}
    lists = {name: [v for spelled in spellings(name) for v in filled.pop(spelled, ())] for name in LISTS}
    last: dict[str, object] = {name: values[-1] for name, values in filled.items() if values}
    last.pop("file", None)
    given = last | {name: values for name, values in lists.items() if values} | dict(form.fixed)
    return with_implied(form, {**defaults, **given})


def request_body(form: type[FormFields]) -> dict[str, Any]:
    """OpenAPI's description of a multipart body, from the model that checks it."""
    schema = form.model_json_schema()
    schema["title"] = form.__name__
    schema.pop("description", None)
    schema["properties"] = dict(_documented(form, schema["properties"]))
    return documented_body(schema, "multipart/form-data")


def _documented(form: type[FormFields], properties: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    own = [name for name in properties if name not in Options.model_fields]
    for name in [*own, *(name for name in properties if name in Options.model_fields)]:
        if name not in form.fixed:
            yield name, _without_null(properties[name])


def _without_null(field: dict[str, Any]) -> dict[str, Any]:
    """A form has no null: clients leave out optional fields."""
    kinds = [kind for kind in field.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) != 1:
        return field
    return {**kinds[0], **{key: value for key, value in field.items() if key not in ("anyOf", "default")}}
