"""Events that clients of OpenAI's Realtime API send to a transcription session. Pure."""

import binascii
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import from_json

from app.common.errors import InvalidInput, fault_of
from app.common.options import MAX_WORDS_CHARS, Language
from app.live.events import StreamOptions, TurnDetection
from workers.messages import ALAW, PCM_24K, ULAW, Encoding

MAX_EVENT_ID_CHARS = 512
SHOWN_FAULTS = 3

CONVERSATIONS = (
    "This service transcribes, and holds no conversations: `session.type` must be `transcription`, and the "
    "client sends `session.update` and `input_audio_buffer.append`, `commit` and `clear`."
)
_OF_CONVERSATIONS = ("response.", "conversation.", "output_audio_buffer.")


def _decoded(value: object, info: ValidationInfo) -> bytes:
    if not isinstance(value, str):
        raise ValueError("Input should be a string of base64")
    try:
        return binascii.a2b_base64(value, strict_mode=True)
    except ValueError:
        raise ValueError("Input should be base64, without spaces or line breaks") from None


def _no_semantic_vad(value: object) -> object:
    if value == "semantic_vad":
        raise ValueError(
            "There is no `semantic_vad` here: send `server_vad`, or turn_detection null and commit yourself"
        )
    return value


def _no_conversation(value: object) -> object:
    if value == "realtime":
        raise ValueError(CONVERSATIONS)
    return value


class _Fields(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    def changed(self, change: Self) -> Self:
        """With the fields that a change has, and with those of its objects."""
        values = {}
        for name in change.model_fields_set:
            old, new = getattr(self, name), getattr(change, name)
            both = isinstance(old, _Fields) and isinstance(new, _Fields)
            values[name] = old.changed(new) if both else new
        return self.model_copy(update=values)


FormatName = Literal["audio/pcm", "audio/pcmu", "audio/pcma"]


class Format(_Fields):
    type: FormatName = "audio/pcm"
    rate: int | None = None

    @field_validator("rate")
    @classmethod
    def _of_its_type(cls, rate: int | None, info: ValidationInfo) -> int | None:
        kind = info.data.get("type")
        if rate is not None and kind is not None:
            expected = _ENCODINGS[kind].rate
            if rate != expected:
                raise ValueError(f"Input should be {expected}, the rate of {kind}")
        return rate

    @property
    def encoding(self) -> Encoding:
        return _ENCODINGS[self.type]

    @classmethod
    def of(cls, encoding: Encoding) -> Self:
        return next(made for name in _ENCODINGS if (made := cls(type=name)).encoding == encoding)

    def changed(self, change: Self) -> Self:
        return change


_ENCODINGS: dict[FormatName, Encoding] = {"audio/pcm": PCM_24K, "audio/pcmu": ULAW, "audio/pcma": ALAW}


class Transcription(_Fields):
    model: str | None = Field(None, max_length=256)
    language: Language = None
    languages: list[Language] | None = Field(None, max_length=100)
    prompt: str | None = Field(None, max_length=MAX_WORDS_CHARS)
    keywords: list[str] | None = Field(None, max_length=MAX_WORDS_CHARS)
    delay: Literal["minimal", "low", "medium", "high", "xhigh"] | None = None

    @property
    def hotwords(self) -> str | None:
        return ", ".join(self.keywords or ()) or None


class NoiseReduction(_Fields):
    type: Literal["near_field", "far_field"] | None = None
    strength: float | None = None


class ServerVad(_Fields):
    type: Annotated[Literal["server_vad"], BeforeValidator(_no_semantic_vad)] = "server_vad"
    threshold: float | None = Field(None, ge=0, le=1)
    prefix_padding_ms: int | None = Field(None, ge=0, le=5000)
    silence_duration_ms: int | None = Field(None, ge=100, le=10_000)
    # Of conversations: nothing answers, so nothing can be interrupted.
    create_response: bool | None = None
    interrupt_response: bool | None = None
    idle_timeout_ms: int | None = None
    eagerness: str | None = None  # comes with `semantic_vad`, which has its own error

    @property
    def detection(self) -> TurnDetection:
        names = {"threshold", "prefix_padding_ms", "silence_duration_ms"}
        return TurnDetection(**self.model_dump(include=names, exclude_none=True))


class AudioInput(_Fields):
    """`audio.input` of a session: how it is now, or what is to change."""

    format: Format | None = None
    transcription: Transcription | None = None
    turn_detection: ServerVad | None = None
    noise_reduction: NoiseReduction | None = None

    @property
    def words(self) -> Transcription:
        return self.transcription or Transcription()

    @property
    def encoding(self) -> Encoding:
        return (self.format or Format()).encoding

    @property
    def options(self) -> StreamOptions:
        """Raises InvalidInput if there are too many keywords."""
        words = self.words
        if len(words.hotwords or "") > MAX_WORDS_CHARS:
            raise InvalidInput(
                f"The keywords have {len(words.hotwords or '')} characters, more than {MAX_WORDS_CHARS}.",
                param="session.audio.input.transcription.keywords",
            )
        return StreamOptions(
            words.language,
            () if words.language else tuple(dict.fromkeys(filter(None, words.languages or ()))),
            words.prompt or None,
            words.hotwords,
            None if self.turn_detection is None else self.turn_detection.detection,
        )

    def document(self, model: str) -> dict[str, Any]:
        """As `session.updated` shows it, with all that counts. `model`: what counts if none is named."""
        turns = self.options.turns
        words = self.words.model_dump(exclude_none=True)
        reduction = self.noise_reduction
        return {
            "format": {"type": "audio/pcm", "rate": 24000}
            if self.encoding == PCM_24K
            else {"type": (self.format or Format()).type},  # OpenAI's has no rate
            "transcription": {"model": model} | words,
            "turn_detection": turns and {"type": "server_vad", **asdict(turns)},
            "noise_reduction": reduction and reduction.model_dump(exclude_none=True),
        }

    @property
    def without_effect(self) -> list[str]:
        """The fields that are set, and change nothing here."""
        turns = self.turn_detection or ServerVad()
        values = {
            "noise_reduction": self.noise_reduction,
            "transcription.delay": self.words.delay,
            "transcription.languages": (self.words.language and self.words.languages) or None,
            "turn_detection.create_response": turns.create_response,
            "turn_detection.interrupt_response": turns.interrupt_response,
            "turn_detection.idle_timeout_ms": turns.idle_timeout_ms,
        }
        return [f"audio.input.{name}" for name, value in values.items() if value is not None]


class Audio(_Fields):
    input: AudioInput | None = None


class Session(_Fields):
    type: Annotated[Literal["transcription"], BeforeValidator(_no_conversation)]
    audio: Audio | None = None
    include: list[Literal["item.input_audio_transcription.logprobs"]] | None = None  # nothing has them


class _Event(_Fields):
    type: str
    event_id: str | None = None


class Update(_Event):
    session: Session


class Append(_Event):
    audio: Annotated[bytes, BeforeValidator(_decoded)]


class Commit(_Event):
    pass


class Clear(_Event):
    pass


ClientEvent = Update | Append | Commit | Clear

_TYPES: Mapping[str, type[ClientEvent]] = {
    "session.update": Update,
    "input_audio_buffer.append": Append,
    "input_audio_buffer.commit": Commit,
    "input_audio_buffer.clear": Clear,
}


class InvalidEvent(InvalidInput):
    """An event of a client is not valid. `event_id`: the client's, if it has one."""

    def __init__(
        self, message: str, *, param: str | None = None, code: str | None = None, event_id: str | None = None
    ) -> None:
        super().__init__(message, param=param, code=code)
        self.event_id = event_id


def parse_event(message: bytes) -> ClientEvent:
    """An event of a client. Raises InvalidEvent."""
    try:
        document = from_json(message, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidEvent(f"The event is not valid JSON: {error}.", code="invalid_json") from None
    if not isinstance(document, dict):
        raise InvalidEvent('An event is a JSON object, such as {"type": "input_audio_buffer.commit"}.')
    event_id = document.get("event_id")
    event_id = event_id[:MAX_EVENT_ID_CHARS] if isinstance(event_id, str) else None
    kind = document.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        raise InvalidEvent(_unknown_type(kind), param="type", code="invalid_value", event_id=event_id)
    try:
        return _TYPES[kind].model_validate(document)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
    names = [".".join(map(str, problem["loc"])) for problem in problems]
    faults = [f"`{name}`: {_fault(problem)}" for name, problem in zip(names, problems, strict=True)]
    raise InvalidEvent(
        "; ".join(faults[:SHOWN_FAULTS]), param=names[0], code="invalid_value", event_id=event_id
    )


def _fault(problem: Mapping[str, Any]) -> str:
    if problem["type"] == "missing":
        return "is required, and was not sent"
    return "is not known here" if problem["type"] == "extra_forbidden" else fault_of(problem)


def _unknown_type(kind: object) -> str:
    if isinstance(kind, str) and kind.startswith(_OF_CONVERSATIONS):
        return CONVERSATIONS
    if kind == "transcription_session.update":
        return "That is the event of the beta: send `session.update` with the type `transcription`."
    shown = repr(kind)[:100]
    return f"There is no event of the type {shown} here. The types are {', '.join(_TYPES)}."
