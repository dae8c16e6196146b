"""The fields of the endpoints that receive recordings: models that check a request and document it."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema, model_validator

from app.api.errors import invalid_input
from app.api.speaker_fields import KNOWN_NAMES, KNOWN_REFERENCES, KnownSpeakerFields, with_implied
from app.errors import InvalidInput
from app.media.uploads import Fields, Upload
from app.options import Options, Text
from app.transcript.rendering import with_word_times

if TYPE_CHECKING:
    from app.transcription.service import TranscriptionService

Granularity = Literal["segment", "word"]
ResponseFormat = Literal["json", "text", "srt", "verbose_json", "vtt", "diarized_json"]

AudioFile = Annotated[Upload, WithJsonSchema({"type": "string", "format": "binary"})]

GRANULARITIES = "timestamp_granularities[]"
DIARIZED: ResponseFormat = "diarized_json"
LISTS = (GRANULARITIES, KNOWN_NAMES, KNOWN_REFERENCES)  # fields that may be repeated


class FormFields(BaseModel):
    """The fields of a request. Unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    fixed: ClassVar[Mapping[str, object]] = {}  # fields that the endpoint sets itself


class RequestFields(FormFields, Options):
    """The fields of a request with all options of a transcription."""

    @property
    def options(self) -> Options:
        """The request's options."""
        return Options.model_validate(self.model_dump(include=set(Options.model_fields)))


class QueryFields(RequestFields):
    """The parameters of a query. Blank values count as absent."""

    @model_validator(mode="before")
    @classmethod
    def _drop_blanks(cls, fields: Mapping[str, object]) -> dict[str, object]:
        return {
            name: value
            for name, value in fields.items()
            if not (isinstance(value, str) and not value.strip())
        }


class AudioForm(RequestFields):
    """The fields of both OpenAI endpoints."""

    file: AudioFile = Field(description="The recording, in any format that FFmpeg reads.")
    model: str = Field(max_length=256, description="A model of `/v1/models`; `whisper-1` is the default one.")
    response_format: ResponseFormat = Field(
        "json", description="Format of the response. `diarized_json` says who speaks."
    )

    @property
    def granularities(self) -> frozenset[Granularity]:
        return frozenset({"segment"})

    @property
    def options(self) -> Options:
        """The request's options, with word times if the response needs them."""
        options = with_word_times(super().options, self.response_format)
        if "word" in self.granularities:
            return options.model_copy(update={"word_timestamps": True})
        return options


class TranscriptionForm(AudioForm, KnownSpeakerFields):
    chunking_strategy: str | None = Field(
        None,
        max_length=1000,
        pattern=r'^\s*(auto|\{[\s\S]*"server_vad"[\s\S]*\})\s*$',
        description="Ignored: a recording is always cut where nobody speaks. `auto`, or a JSON object of the "
        "type `server_vad`.",
    )
    timestamp_granularities: Annotated[list[Granularity], Field(alias=GRANULARITIES)] = Field(
        default_factory=list,
        description="Times in verbose_json: of segments if empty; only of words if `word` is the only value.",
    )
    stream: bool = Field(
        False,
        description="Respond with server-sent events as clips finish. Of the formats, only `diarized_json` "
        "matters then: the last event has the speakers.",
    )

    @property
    def granularities(self) -> frozenset[Granularity]:
        return frozenset(self.timestamp_granularities) or frozenset({"segment"})

    @classmethod
    def asks_for_speakers(cls, fields: Mapping[str, object]) -> bool:
        return fields.get("response_format") == DIARIZED or super().asks_for_speakers(fields)

    @model_validator(mode="after")
    def _check_granularities(self) -> Self:
        if "word" in self.timestamp_granularities and self.response_format in ("json", "text", DIARIZED):
            raise InvalidInput(
                f"Word times have no place in response_format={self.response_format}; "
                "ask for response_format=verbose_json.",
                param=GRANULARITIES,
            )
        return self

    @model_validator(mode="after")
    def _check_diarized(self) -> Self:
        if self.response_format != DIARIZED:
            return self
        if self.task == "translate":
            raise InvalidInput(
                f"response_format={DIARIZED} is for the language that is spoken. Ask for a translation as "
                "verbose_json with `diarize`.",
                param="response_format",
            )
        if not self.diarize and self.channels == "mix":
            raise InvalidInput(
                f"response_format={DIARIZED} says who speaks. Leave out diarize=false, or ask for another "
                "format.",
                param="diarize",
            )
        return self


class TranslationForm(AudioForm):
    """Always detects the language: OpenAI's endpoint has no field for it."""

    fixed: ClassVar[Mapping[str, object]] = {"task": "translate", "language": None}

    response_format: Literal["json", "text", "srt", "verbose_json", "vtt"] = Field(
        "json", description="Format of the response."
    )


class JobFields(QueryFields):
    """The fields of a job, for every kind of request body."""

    model: str = Field("", max_length=256, description="A model of `/v1/models`; the default one if absent.")
    webhook_url: Text = Field(
        None, max_length=2048, description="URL that is called when the job ends, and after each correction."
    )
    filename: Text = Field(
        None, max_length=255, description="Name of the recording, if the request has no other."
    )


class JobForm(JobFields, KnownSpeakerFields):
    file: AudioFile = Field(description="The recording, in any format that FFmpeg reads.")


class JobSource(JobFields, KnownSpeakerFields):
    """A JSON document that says where the recording is."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["url"]}, {"required": ["upload"]}]},
        validate_by_name=True,
    )

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
NOTHING: Mapping[str, Any] = {}


def parse(form: type[F], fields: Fields, file: Upload | None, defaults: Mapping[str, Any] = NOTHING) -> F:
    """The checked fields of a request, with `defaults` for absent ones. Raises InvalidInput."""
    values = with_implied(form, {**defaults, **_values(form, fields)}) | ({"file": file} if file else {})
    try:
        return form.model_validate(values)
    except ValidationError as error:
        raise invalid_input(error.errors(include_url=False)) from None


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
    task = str(values.get("task", "")) if "model" in values else ""  # another model may follow the file
    service.fleet.catalogue.resolve(str(values.get("model", "")).strip(), task)
    if Options.model_validate(values).diarize:
        service.media.speaker_models.check()


def check_present(
    form: type[FormFields], fields: Fields, defaults: Mapping[str, Any] = NOTHING
) -> Mapping[str, object]:
    """Check the fields that arrived before the file. More may follow, so none is missing yet.

    Returns their values. Raises InvalidInput.
    """
    values = with_implied(form, {**defaults, **_values(form, fields)})
    try:
        form.model_validate(values)
    except ValidationError as error:
        problems = [problem for problem in error.errors(include_url=False) if problem["type"] != "missing"]
        if problems:
            raise invalid_input(problems) from None
    return values


def _values(form: type[FormFields], fields: Fields) -> dict[str, object]:
    """The fields of a form, for pydantic, without blank values; the last one of a repeated field."""
    filled = {name: [value for value in values if value.strip()] for name, values in fields.items()}
    lists = {name: filled.pop(name, []) + filled.pop(name.removesuffix("[]"), []) for name in LISTS}
    last: dict[str, object] = {name: values[-1] for name, values in filled.items() if values}
    last.pop("file", None)
    return last | lists | dict(form.fixed)


def request_body(form: type[FormFields]) -> dict[str, Any]:
    """OpenAPI's description of a multipart body, from the model that checks it."""
    schema = form.model_json_schema()
    schema["title"] = form.__name__
    schema.pop("description", None)
    schema["properties"] = dict(_documented(form, schema["properties"]))
    content = {"multipart/form-data": {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}


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
