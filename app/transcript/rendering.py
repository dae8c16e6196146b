"""What the options of a request make of results: segments in its script, and files with cues."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from io import BytesIO
from typing import Any

from app.common.options import Options
from app.transcript.cues.lines import CueStyle
from app.transcript.cues.profiles import cue_style
from app.transcript.cues.shaping import shape_cues
from app.transcript.cues.timing import Cue
from app.transcript.edited import split_turns
from app.transcript.formats import DOCUMENT_FORMATS, FORMATS, Format
from app.transcript.formats.common import FileCue, FileStyle
from app.transcript.pauses import with_pauses
from app.transcript.terms import Term, replace_terms
from app.transcript.text.chinese import LANGUAGES as CHINESE
from app.transcript.text.chinese import convert_segments
from app.transcript.text.speaker_text import SpeakerPrefix
from app.transcript.timeline import ClipResult, Transcript, place_segments
from workers.messages import SAMPLE_RATE, Segment, Span

# Takes a transcript and its cues, in order, and yields the file in parts: text in UTF-8, or bytes. Raises
# `UnsuitableFormat` if the format cannot hold the transcript.
Writer = Callable[[Transcript, Iterable[Cue], FileStyle], Iterator[str | bytes]]

CUE_FORMATS = frozenset(name for name, known in FORMATS.items() if known.has_cues)

# Which options need what for an effect, and whether they have it.
_NEEDS: Mapping[tuple[str, ...], tuple[str, Callable[[Options], bool]]] = {
    ("num_speakers", "min_speakers", "max_speakers"): ("needs diarize", lambda options: options.diarize),
    ("speaker_names",): (
        "needs diarize or channels=separate",
        lambda options: options.diarize or options.channels == "separate",
    ),
    ("languages", "multilingual"): ("needs language to be absent", lambda options: options.language is None),
    ("beam_size",): ("needs temperature=0", lambda options: options.temperature == 0),
    ("chinese",): (
        "needs text in Chinese",
        lambda options: options.task == "transcribe" and options.language in (None, *CHINESE),
    ),
}
_DEFAULTS = {name: field.default for name, field in Options.model_fields.items()}
# In which formats options of files have an effect.
_USED_IN: Mapping[tuple[str, ...], Collection[str]] = {
    (
        *("profile", "max_line_chars", "max_lines", "max_cps", "min_cue_s", "max_cue_s", "min_gap_s"),
        *("fps", "start_offset_s"),
    ): [name for name in FORMATS if name in CUE_FORMATS],
    ("word_level",): ("vtt", "ass"),
    ("srt_bom", "srt_crlf"): ("srt",),
    ("times", "speakers", "numbered", "mark_pauses_s"): DOCUMENT_FORMATS,
}


def without_effect(
    options: Options, given: Collection[str], file_format: str | None = None
) -> dict[str, str]:
    """Those of the options named in `given` that have no effect, each with what it needs.

    `file_format`: that of the result, also one that `FORMATS` lacks; None: it is chosen later. An option at
    its default value is as good as absent.
    """
    useless = {
        name: need for names, (need, is_met) in _NEEDS.items() if not is_met(options) for name in names
    }
    if file_format is not None:
        useless |= {
            name: f"only in {', '.join(formats)}"
            for names, formats in _USED_IN.items()
            if file_format not in formats
            for name in names
        }
    changed = {name for name in given if getattr(options, name, None) != _DEFAULTS.get(name)}
    return {name: need for name, need in useless.items() if name in changed}


def clip_segments(
    clip: Span, result: ClipResult, options: Options, terms: tuple[Term, ...] = ()
) -> tuple[Segment, ...]:
    """The segments of a clip, in samples of the recording, in the script that the options ask for.

    `terms`: replace what the model wrote. The pipeline and jobs that still run share the segments.
    """
    segments = place_segments(result.segments, clip)
    is_translated = options.task != "transcribe"
    if not is_translated and options.chinese != "keep":
        segments = convert_segments(segments, options.chinese, result.language)
    if not terms:
        return segments
    return replace_terms(segments, terms, result.language, "en" if is_translated else None)


def with_word_times(options: Options, *file_formats: str) -> Options:
    """The options, with word times if cues, speakers or pauses are asked for: all are between words."""
    if CUE_FORMATS.isdisjoint(file_formats) and not options.diarize and options.mark_pauses_s is None:
        return options
    return options.model_copy(update={"word_timestamps": True})


def writer_of(form: Format) -> Writer:
    """The function that writes the format, from its module."""
    writer: Writer = _function(form.writer)
    return writer


def _function(name: str) -> Any:
    module, function = name.split(".")
    return getattr(import_module(f"app.transcript.formats.{module}"), function)


def render_transcript(
    transcript: Transcript,
    options: Options,
    file_format: str,
    prefix: SpeakerPrefix | None = None,
    title: str = "",
) -> bytes:
    """The transcript as a file in one of `formats.FORMATS`, in UTF-8 if it is text.

    `prefix`: how text says who speaks, in cues of any format and in `txt`. If it is absent, each format says
    it in its own way: `srt` and documents with the name where the speaker changes, others without text.
    `title`: of the recording, for formats that have one.
    Raises KeyError for any other format, and `UnsuitableFormat` if the format cannot hold the transcript.
    Costs CPU time on long recordings: call it in a thread.
    """
    form = FORMATS[file_format]
    cues, _, file_style = _shaped(transcript, options, form, prefix, title)
    if form.is_document and options.mark_pauses_s is not None:
        least, turns = round(options.mark_pauses_s * SAMPLE_RATE), split_turns(transcript.segments)
        marked = tuple(with_pauses(turns, least, transcript.failed_spans))
        transcript = replace(transcript, segments=marked)
    file = BytesIO()  # only this grows with the recording; cues and text are made one by one
    for part in writer_of(form)(transcript, cues, file_style):
        file.write(part if isinstance(part, bytes) else part.encode())
    return file.getvalue()


def file_cues(
    transcript: Transcript, options: Options, file_format: str
) -> tuple[Iterator[FileCue], CueStyle]:
    """The cues that `render_transcript` writes in a format that has some, and the limits that they keep.

    Raises KeyError for any other format, and, with the cues, `UnsuitableFormat`.
    """
    form = FORMATS[file_format]
    if form.cues is None:
        raise KeyError(file_format)
    cues, style, file_style = _shaped(transcript, options, form)
    found: Iterator[FileCue] = _function(form.cues)(cues, file_style)
    return found, style


def _shaped(
    transcript: Transcript,
    options: Options,
    form: Format,
    prefix: SpeakerPrefix | None = None,
    title: str = "",
) -> tuple[Iterator[Cue], CueStyle, FileStyle]:
    """The cues of a transcript for a format, their limits, and how the file is written."""
    language = transcript.text_language

    @cache
    def style_of(language: str) -> CueStyle:
        style = cue_style(options, language)
        most = form.max_line_chars or style.max_line_chars
        return replace(style, max_line_chars=min(style.max_line_chars, most))

    style = replace(style_of(language), of_other=style_of)
    segments: Iterable[Segment] = transcript.segments
    if transcript.task == "translate":  # all of it is in English
        segments = (replace(segment, language=None) if segment.language else segment for segment in segments)
    shown = SpeakerPrefix() if prefix is None and form.names_speakers_in_text else prefix
    if form.is_document and not options.speakers:
        shown = None
    cues = shape_cues(segments, transcript.speech, style, language, transcript.samples, shown)
    file_style = FileStyle(
        word_level=options.word_level,
        srt_bom=options.srt_bom,
        srt_crlf=options.srt_crlf,
        max_lines=style.max_lines,
        fps=style.fps,
        prefix=shown,
        times=options.times,
        numbered=options.numbered,
        title=title,
    )
    return cues, style, file_style


def rendering_s(form: str, recording_s: float) -> float:
    """As `helper.work_s`, for a file in a format: those that need a large library are made in the process."""
    from app.pool.helper import LONG_S  # imports much, and the command line renders, too

    return LONG_S if form in FORMATS and FORMATS[form].loads_library else recording_s
