"""A transcript as a file, in the form that the options ask for."""

from io import BytesIO

from app.options import Options
from app.transcript.cues import CueStyle, shape_cues
from app.transcript.formats import pieces
from app.transcript.timeline import Transcript

MADE_OF_CUES = frozenset({"srt", "vtt", "ass", "ttml", "lrc"})  # formats; cues are split between words


def subtitles(transcript: Transcript, options: Options, file_format: str) -> bytes:
    """The transcript as a file in one of `formats.FORMATS`, in UTF-8; a translation is laid out as English.

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
    file = BytesIO()  # the one thing that is as long as the recording
    for piece in pieces(transcript, cues, file_format):
        file.write(piece.encode())
    return file.getvalue()
