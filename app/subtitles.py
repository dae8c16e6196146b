"""A transcript as a file, in the form that the options ask for."""

from app.options import Options
from app.transcript.cues import CueStyle, shape_cues
from app.transcript.formats import render
from app.transcript.timeline import Transcript

MADE_OF_CUES = frozenset({"srt", "vtt", "ass", "ttml", "lrc"})  # formats; cues are split between words


def subtitles(transcript: Transcript, options: Options, file_format: str) -> str:
    """The transcript in one of `formats.FORMATS`; a translation is laid out as the English that it is.

    Costs CPU time on long recordings: call it in a thread.
    """
    style = CueStyle(
        max_line_chars=options.max_line_chars,
        max_lines=options.max_lines,
        max_cps=options.max_cps,
        min_cue_s=options.min_cue_s,
        max_cue_s=options.max_cue_s,
    )
    language = "en" if transcript.task == "translate" else transcript.language
    cues = shape_cues(transcript.segments, transcript.speech, style, language, transcript.samples)
    return render(transcript, cues, file_format)
