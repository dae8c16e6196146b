"""The fields of the endpoints that take recordings: models which both check a request and document it."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import Field, ValidationError, WithJsonSchema, model_validator

from app.api.errors import invalid
from app.errors import InvalidInput
from app.media.uploads import Fields, Upload
from app.options import Options, Text
from app.transcript.rendering import with_word_times

Granularity = Literal["segment", "word"]
ResponseFormat = Literal["json", "text", "srt", "verbose_json", "vtt"]

Recording = Annotated[Upload, WithJsonSchema({"type": "string", "format": "binary"})]

GRANULARITIES = "timestamp_granularities[]"


class RequestFields(Options):
    """What a request says; names that are not known are ignored."""

    fixed: ClassVar[Mapping[str, object]] = {}  # what the endpoint itself decides

    @property
    def options(self) -> Options:
        """The request's options."""
        return Options.model_validate(self.model_dump(include=set(Options.model_fields)))

    def check(self) -> None:
        """Raise InvalidInput where fields that are right by themselves do not fit together."""


class QueryFields(RequestFields):
    """What a query says: blank values are absent."""

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, fields: Mapping[str, object]) -> dict[str, object]:
        return {
            name: value
            for name, value in fields.items()
            if not (isinstance(value, str) and not value.strip())
        }


class AudioForm(RequestFields):
    """Fields that both of OpenAI's endpoints take."""

    file: Recording = Field(description="The recording, in any format that FFmpeg reads.")
    model: str = Field(max_length=256, description="A model of `/v1/models`; `whisper-1` is the default one.")
    response_format: ResponseFormat = Field("json", description="What the answer looks like.")

    @property
    def granularities(self) -> frozenset[Granularity]:
        return frozenset({"segment"})

    @property
    def streamed(self) -> bool:
        """Whether the answer is a stream of events."""
        return False

    @property
    def options(self) -> Options:
        """The request's options; word times are switched on where the answer needs them."""
        options = with_word_times(super().options, self.response_format)
        if "word" in self.granularities:
            return options.model_copy(update={"word_timestamps": True})
        return options


class TranscriptionForm(AudioForm):
    timestamp_granularities: Annotated[list[Granularity], Field(alias=GRANULARITIES)] = Field(
        default_factory=list,
        description="Times in verbose_json: segments where empty; `word` alone leaves segments out.",
    )
    stream: bool = Field(
        False, description="Answer with server-sent events as clips finish; response_format is not looked at."
    )

    @property
    def granularities(self) -> frozenset[Granularity]:
        return frozenset(self.timestamp_granularities) or frozenset({"segment"})

    @property
    def streamed(self) -> bool:
        return self.stream

    def check(self) -> None:
        if "word" in self.timestamp_granularities and self.response_format in ("json", "text"):
            raise InvalidInput(
                f"Word times have no place in response_format={self.response_format}; "
                "ask for response_format=verbose_json.",
                param=GRANULARITIES,
            )


class TranslationForm(AudioForm):
    """The language spoken is always detected: OpenAI's endpoint has no such field, and it is ignored here."""

    fixed: ClassVar[Mapping[str, object]] = {"task": "translate", "language": None}


class JobFields(QueryFields):
    """What may be said of a job, however its recording is handed in."""

    model: str = Field("", max_length=256, description="A model of `/v1/models`; the default one if absent.")
    webhook_url: Text = Field(None, max_length=2048, description="Where the end of the job is announced.")
    filename: Text = Field(
        None, max_length=255, description="What the recording is called, where nothing else says it."
    )


class JobForm(JobFields):
    file: Recording = Field(description="The recording, in any format that FFmpeg reads.")


class JobUrl(JobFields):
    url: str = Field(max_length=2048, description="Where the recording is to be fetched from.")


F = TypeVar("F", bound=RequestFields)
NOTHING: Mapping[str, Any] = {}


def parse(form: type[F], fields: Fields, file: Upload | None, defaults: Mapping[str, Any] = NOTHING) -> F:
    """The request's fields, checked; of those it leaves out, `defaults`. Raises InvalidInput."""
    values = {**defaults, **_values(form, fields)} | ({"file": file} if file else {})
    try:
        parsed = form.model_validate(values)
    except ValidationError as error:
        raise invalid(error.errors(include_url=False)) from None
    parsed.check()
    return parsed


def check_early(form: type[RequestFields], fields: Fields, defaults: Mapping[str, Any] = NOTHING) -> None:
    """Raise InvalidInput for what is wrong with the fields so far; more may follow."""
    try:
        form.model_validate({**defaults, **_values(form, fields)})
    except ValidationError as error:
        faults = [fault for fault in error.errors(include_url=False) if fault["type"] != "missing"]
        if faults:
            raise invalid(faults) from None


def _values(form: type[RequestFields], fields: Fields) -> dict[str, object]:
    """What a form says, for pydantic: blank means absent, and of a repeated field the last one counts."""
    said = {name: [value for value in values if value.strip()] for name, values in fields.items()}
    granularities = said.pop(GRANULARITIES, []) + said.pop("timestamp_granularities", [])
    values: dict[str, object] = {name: filled[-1] for name, filled in said.items() if filled}
    values.pop("file", None)
    return values | {GRANULARITIES: granularities} | dict(form.fixed)


def request_body(form: type[RequestFields]) -> dict[str, Any]:
    """OpenAPI's description of a multipart body: derived from the model that checks it."""
    schema = form.model_json_schema()
    schema["title"] = form.__name__
    schema.pop("description", None)
    schema["properties"] = dict(_documented(form, schema["properties"]))
    content = {"multipart/form-data": {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}


def _documented(form: type[RequestFields], properties: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    own = [name for name in properties if name not in Options.model_fields]
    for name in [*own, *(name for name in properties if name in Options.model_fields)]:
        if name not in form.fixed:
            yield name, _without_null(properties[name])


def _without_null(field: dict[str, Any]) -> dict[str, Any]:
    """A form has no null: an optional field is simply left out."""
    kinds = [kind for kind in field.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) != 1:
        return field
    return {**kinds[0], **{key: value for key, value in field.items() if key not in ("anyOf", "default")}}
