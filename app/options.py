"""The options of one transcription, for every endpoint and the command line."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from app.languages import language_code


def _blank_is_none(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value


Language = Annotated[str | None, AfterValidator(language_code), BeforeValidator(_blank_is_none)]
Text = Annotated[str | None, BeforeValidator(_blank_is_none)]


class Options(BaseModel):
    """What a request may choose. OpenAPI shows the ranges that are checked here."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    task: Literal["transcribe", "translate"] = Field(
        "transcribe", description="`translate` gives English text."
    )
    language: Language = Field(
        None, description="Language spoken, as ISO 639-1 code or English name; detected if absent."
    )
    multilingual: bool = Field(False, description="Detect the language of each clip separately.")
    prompt: Text = Field(
        None, max_length=4000, description="Text that sets style and spelling, for every clip."
    )
    hotwords: Text = Field(None, max_length=4000, description="Words to expect, for every clip.")
    temperature: float = Field(
        0.0,
        ge=0,
        le=1,
        description="0: deterministic decoding with a deterministic fallback. Above: sampling.",
    )
    beam_size: int = Field(5, ge=1, le=20, description="Beams of the search at temperature 0.")
    word_timestamps: bool = Field(False, description="Times for each word.")
    vad_threshold: float = Field(
        0.5, ge=0.01, le=0.99, description="Speech probability that counts as speech."
    )
    min_speech_ms: int = Field(
        250, ge=0, le=10_000, description="Shorter stretches of speech are dropped (ms)."
    )
    min_silence_ms: int = Field(100, ge=0, le=10_000, description="Shorter pauses do not end speech (ms).")
    speech_pad_ms: int = Field(30, ge=0, le=1000, description="Speech is extended by this on each side (ms).")
    max_line_chars: int = Field(42, ge=10, le=200, description="Width of a subtitle line; CJK counts double.")
    max_lines: int = Field(2, ge=1, le=4, description="Lines in a subtitle.")
    max_cps: float = Field(20, ge=5, le=100, description="Characters per second that people can read.")
    min_cue_s: float = Field(5 / 6, ge=0.1, le=5, description="Shortest time a subtitle stays (s).")
    max_cue_s: float = Field(7, ge=1, le=30, description="Longest time a subtitle stays (s).")
    word_level: bool = Field(
        False, description="The time of each word in the subtitles: WebVTT timestamps, ASS karaoke."
    )
    srt_bom: bool = Field(False, description="SRT begins with a byte order mark.")
    srt_crlf: bool = Field(False, description="Lines of SRT end with CR LF.")
    chinese: Literal["keep", "traditional", "simplified"] = Field(
        "keep", description="Script that Chinese text is converted to."
    )
    allow_partial: bool = Field(
        False, description="Succeed even if some spans could not be transcribed; the answer lists them."
    )
