"""The options of one transcription, for every endpoint and the command line; numbers in requests."""

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    create_model,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from app.common.languages import language_code, names_in_files
from workers.messages import SAMPLE_RATE, Selection

MAX_POSITION_S = 1_000_000  # over eleven days
SHORTEST_PART_S = 0.1  # as the shortest recording
MAX_SPEAKERS = 100
MAX_SPEAKER_CHARS = 100  # of a name
MAX_WORDS_CHARS = 4000  # of a prompt, and of all hot words


# Python would also take `1_000`, which is a number nowhere else.
_DIGITS = re.compile(r"-?0*[1-9][0-9]*|0+")


def check_whole(value: object) -> object:
    """Refuse a text that is no whole number in digits."""
    if isinstance(value, str) and not _DIGITS.fullmatch(value.strip()):
        raise PydanticCustomError("whole_number", "must be a whole number, written in digits such as 1000")
    return value


def check_number(value: object) -> object:
    """Refuse a text with `_`. pydantic refuses everything else that is no number."""
    if isinstance(value, str) and "_" in value:
        raise PydanticCustomError("number", "must be a number, written in digits such as 0.5")
    return value


# After the limits of a type: they belong to the number.
WHOLE = BeforeValidator(check_whole)
NUMBER = BeforeValidator(check_number)


def _blank_is_none(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value


def _number_or_auto(value: object, validate: ValidatorFunctionWrapHandler) -> object:
    if isinstance(value, str) and value.strip().lower() == "auto":
        return "auto"
    try:
        return validate(value)
    except ValidationError as error:
        faults = [fault["msg"] for fault in error.errors() if fault["type"] != "literal_error"]
        raise PydanticCustomError(
            "number_or_auto", "{faults}, or `auto`", {"faults": "; ".join(faults)}
        ) from None


# Not chosen: the profile and the language of the text decide. Documented as an enumeration, because clients
# that openapi-python-client generates cannot send a constant in a form.
Auto = Annotated[Literal["auto"], WithJsonSchema({"enum": ["auto"], "type": "string"})]
_OrAuto = WrapValidator(_number_or_auto)
LineChars = Annotated[Auto | Annotated[int, Field(ge=10, le=200), WHOLE], _OrAuto]
Lines = Annotated[Auto | Annotated[int, Field(ge=1, le=4), WHOLE], _OrAuto]
CharsPerSecond = Annotated[Auto | Annotated[float, Field(ge=5, le=100), NUMBER], _OrAuto]
ShortestCue = Annotated[Auto | Annotated[float, Field(ge=0.1, le=5), NUMBER], _OrAuto]
LongestCue = Annotated[Auto | Annotated[float, Field(ge=1, le=30), NUMBER], _OrAuto]
Gap = Annotated[Auto | Annotated[float, Field(ge=0, le=1), NUMBER], _OrAuto]
FrameRate = Annotated[Annotated[float, Field(ge=10, le=120), NUMBER] | None, BeforeValidator(_blank_is_none)]
Pause = Annotated[Annotated[float, Field(ge=0.1, le=60), NUMBER] | None, BeforeValidator(_blank_is_none)]
ProfileName = Literal["netflix", "bbc", "broadcast", "social"]
Language = Annotated[str | None, AfterValidator(language_code), BeforeValidator(_blank_is_none)]
Text = Annotated[str | None, BeforeValidator(_blank_is_none)]
Position = Annotated[
    Annotated[float, Field(ge=0, le=MAX_POSITION_S, allow_inf_nan=False), NUMBER] | None,
    BeforeValidator(_blank_is_none),
]
SpeakerCount = Annotated[
    Annotated[int, Field(ge=1, le=MAX_SPEAKERS), WHOLE] | None, BeforeValidator(_blank_is_none)
]


def _joined_names(value: object) -> object:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else value


def _check_names(names: str | None) -> str | None:
    """Checks names that are separated by commas."""
    seen: set[str] = set()
    for name in _names(names):
        if not name or len(name) > MAX_SPEAKER_CHARS or not name.isprintable():
            raise PydanticCustomError(
                "speaker_name",
                "must be names of 1 to {most} printable characters, separated by commas",
                {"most": MAX_SPEAKER_CHARS},
            )
        if name in seen:
            raise PydanticCustomError(
                "repeated_name", "has {name} twice: give each speaker another name", {"name": repr(name)}
            )
        seen.add(name)
    return names


def _names(names: str | None) -> tuple[str, ...]:
    return () if names is None else tuple(name.strip() for name in names.split(","))


SpeakerNames = Annotated[
    Annotated[str, Field(max_length=5000)] | None,
    AfterValidator(_check_names),
    BeforeValidator(_blank_is_none),
    BeforeValidator(_joined_names),
]


def _check_languages(names: str | None) -> str | None:
    """Language codes for languages that are separated by commas."""
    return (
        None if names is None else ",".join(dict.fromkeys(str(language_code(name)) for name in _names(names)))
    )


Languages = Annotated[
    Annotated[str, Field(max_length=1000)] | None,
    AfterValidator(_check_languages),
    BeforeValidator(_blank_is_none),
    BeforeValidator(_joined_names),
]


class FileOptions(BaseModel):
    """How a transcript becomes a file. No clip's result depends on it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    profile: Annotated[ProfileName | None, BeforeValidator(_blank_is_none)] = Field(
        None, description="Guidelines that decide what is `auto`; the service's own defaults if absent."
    )
    max_line_chars: LineChars = Field(
        "auto",
        description="Width of a subtitle line, in columns: a full-width character takes two. 42 for most "
        "languages, Chinese 32, …",
    )
    max_lines: Lines = Field("auto", description="Lines in a subtitle.")
    max_cps: CharsPerSecond = Field(
        "auto",
        description="Columns per second that people can read: a subtitle stays longer to allow for it. 20 "
        "for most languages, Chinese 22, …",
    )
    min_cue_s: ShortestCue = Field("auto", description="Shortest time that a subtitle stays (s).")
    max_cue_s: LongestCue = Field(
        "auto", description="Longest time that a subtitle stays (s). It wins over `min_cue_s` and `max_cps`."
    )
    min_gap_s: Gap = Field("auto", description="Shortest gap between two subtitles (s).")
    fps: FrameRate = Field(
        None,
        description="Frame rate of the video: subtitles begin and end on its frames. 23.976, 29.97 and 59.94 "
        "stand for the exact NTSC rates (24000/1001, …). If absent, the profile's, or no frames.",
    )
    start_offset_s: Annotated[float, NUMBER] = Field(
        0.0, ge=0, le=1, description="Each subtitle begins this long before its first word (s)."
    )
    word_level: bool = Field(
        False, description="The time of each word in the subtitles: timestamps in WebVTT, karaoke in ASS."
    )
    srt_bom: bool = Field(False, description="SRT begins with a byte order mark, for old players on Windows.")
    srt_crlf: bool = Field(False, description="Lines of SRT end with CR LF, for old players on Windows.")
    times: bool = Field(
        False, description="In `txt`, `docx` and `md`: when each line or paragraph begins, as `[01:02:03]`."
    )
    speakers: bool = Field(True, description="In `txt`, `docx` and `md`: who speaks, if that is known.")
    numbered: bool = Field(False, description="In `txt`, `docx` and `md`: number each line or paragraph.")
    mark_pauses_s: Pause = Field(
        None, description="In `txt`, `docx` and `md`: mark pauses of at least this length (s), as `(3.2)`."
    )


# Of a file that is made of an old transcript. Absent ones stay as they were asked for then.
if TYPE_CHECKING:

    class FileChanges(BaseModel):
        """Options of files, each of which may be absent."""
else:

    def _may_be_absent(field: FieldInfo) -> tuple[Any, Any]:
        kind = Annotated[field.annotation, Field(), *field.metadata] | None
        return kind, Field(None, description=field.description)

    _fields = {name: _may_be_absent(field) for name, field in FileOptions.model_fields.items()}
    FileChanges = create_model("FileChanges", **_fields)


class Options(FileOptions):
    """What a request may choose. OpenAPI shows the ranges that are checked here.

    Descriptions are in Markdown: `python -m tests.tables` writes the tables of the documentation from them.
    """

    task: Literal["transcribe", "translate"] = Field(
        "transcribe",
        description="`translate` gives English text. Turbo models cannot: name another, such as `large-v3`.",
    )
    language: Language = Field(
        None,
        description="Language spoken, as ISO 639-1 code or English name. If absent, it is detected: that of "
        "the first clips, and wherever people clearly speak another one, that.",
    )
    languages: Languages = Field(
        None,
        description="The languages that may be spoken, separated by commas, as `en,fr`. If absent, all that "
        "the model knows.",
    )
    multilingual: Annotated[bool | None, BeforeValidator(_blank_is_none)] = Field(
        None,
        description="`false`: one language for the entire recording, that of the first clips. `true`: that "
        "of each clip by itself. If absent, that of each sentence, where it is sure.",
    )
    prompt: Text = Field(
        None,
        max_length=MAX_WORDS_CHARS,
        description="Text that sets style and spelling, for every clip, not only for the first.",
    )
    hotwords: Text = Field(None, max_length=MAX_WORDS_CHARS, description="Words to expect, for every clip.")
    temperature: float = Field(
        0.0,
        ge=0,
        le=1,
        description="0: deterministic decoding with a deterministic fallback. Above: sampling.",
    )
    beam_size: int = Field(5, ge=1, le=20, description="Beams of the search at temperature 0.")
    word_timestamps: bool = Field(False, description="Times for each word.")
    audio_track: Text = Field(
        None,
        max_length=40,
        description="Which sound track of a film: its place among them, from 0, or its language, as ISO 639 "
        "code or English name. If absent, the one that a player would choose.",
    )
    start: Position = Field(
        None, description="Transcribe the recording from here on only (s). Times stay those of the recording."
    )
    end: Position = Field(None, description="Transcribe the recording up to here only (s).")
    diarize: bool = Field(
        False, description="Say who speaks. The speakers are `S1`, `S2`, … in the order in which they appear."
    )
    num_speakers: SpeakerCount = Field(
        None, description="How many people speak, with `diarize`. If absent, the voices decide."
    )
    min_speakers: SpeakerCount = Field(None, description="The fewest people that may speak, with `diarize`.")
    max_speakers: SpeakerCount = Field(None, description="The most people that may speak, with `diarize`.")
    speaker_names: SpeakerNames = Field(
        None,
        description="Names instead of `S1`, `S2`, …, separated by commas: in the order in which the speakers "
        "appear; with `channels=separate`, of the first channel, the second, and so on.",
    )
    channels: Literal["mix", "separate"] = Field(
        "mix",
        description="`separate`: transcribe each channel by itself, up to 8. The channel is the speaker, "
        "as in telephone calls recorded in stereo. Channels that are the same count as one.",
    )
    vad_threshold: float = Field(
        0.5, ge=0.01, le=0.99, description="Speech probability that counts as speech, as in silero-vad."
    )
    min_speech_ms: int = Field(
        250, ge=0, le=10_000, description="Shorter stretches of speech are dropped (ms)."
    )
    min_silence_ms: int = Field(100, ge=0, le=10_000, description="Shorter pauses do not end speech (ms).")
    speech_pad_ms: int = Field(30, ge=0, le=1000, description="Speech is extended by this on each side (ms).")
    chinese: Literal["keep", "traditional", "simplified"] = Field(
        "keep", description="Script that Chinese text is converted to, unless it is kept."
    )
    allow_partial: bool = Field(
        False,
        description="Continue without a span that cannot be transcribed. `failed_spans` lists it, in jobs "
        "and in `verbose_json`.",
    )

    _are_whole = field_validator(
        "beam_size", "min_speech_ms", "min_silence_ms", "speech_pad_ms", mode="before"
    )(check_whole)
    _are_numbers = field_validator("temperature", "vad_threshold", mode="before")(check_number)

    @field_validator("end")
    @classmethod
    def _check_order(cls, end: float | None, others: ValidationInfo) -> float | None:
        start = others.data.get("start")
        if end is not None and start is not None and end - start < SHORTEST_PART_S:
            raise PydanticCustomError(
                "end_before_start",
                "must be at least {least} s after `start`, which is {start} s",
                {"least": SHORTEST_PART_S, "start": start},
            )
        return end

    @field_validator("min_speakers", "max_speakers")
    @classmethod
    def _check_count(cls, count: int | None, others: ValidationInfo) -> int | None:
        number, least = others.data.get("num_speakers"), others.data.get("min_speakers")
        if count is not None and number is not None:
            raise PydanticCustomError(
                "two_counts", "cannot be combined with `num_speakers`: leave one of them out"
            )
        if count is not None and least is not None and count < least:
            raise PydanticCustomError(
                "most_below_least", "must be at least `min_speakers`, which is {least}", {"least": least}
            )
        return count

    @field_validator("channels")
    @classmethod
    def _check_channels(cls, channels: str, others: ValidationInfo) -> str:
        if channels == "separate" and others.data.get("diarize"):
            raise PydanticCustomError(
                "channels_and_diarize",
                "`separate` makes each channel a speaker, and `diarize` finds the speakers by their voices: "
                "choose one of them",
            )
        return channels

    @property
    def names_of_speakers(self) -> tuple[str, ...]:
        """The names in `speaker_names`."""
        return _names(self.speaker_names)

    @property
    def expected_languages(self) -> tuple[str, ...]:
        """The codes in `languages`; empty: all languages."""
        return _names(self.languages)

    @property
    def selection(self) -> Selection:
        """The part of a recording that is transcribed, and from which sound track."""
        return Selection(
            track=None if self.audio_track is None else _track(self.audio_track),
            start=0 if self.start is None else round(self.start * SAMPLE_RATE),
            end=None if self.end is None else round(self.end * SAMPLE_RATE),
        )


def _track(value: str) -> int | tuple[str, ...]:
    return int(value) if value.isascii() and value.isdecimal() else names_in_files(value)


# No clip's result depends on the options that follow: they matter once the transcript is there.
SPEAKER_OPTIONS = frozenset({"diarize", "num_speakers", "min_speakers", "max_speakers", "speaker_names"})
FILE_OPTIONS = frozenset(FileOptions.model_fields)
