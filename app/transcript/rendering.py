"""A transcript as a file, with cues as the options ask for them."""

import math
from io import BytesIO

from app.options import Options
from app.transcript.cues import CueStyle, shape_cues
from app.transcript.formats import FORMATS
from app.transcript.lines import SAMPLES_PER_MS
from app.transcript.timeline import Transcript

CUE_FORMATS = frozenset({"srt", "vtt", "ass", "ttml", "lrc"})


def with_word_times(options: Options, *file_formats: str) -> Options:
    """The options, with word times if one of the formats consists of cues: cues are split between words."""
    if CUE_FORMATS.isdisjoint(file_formats):
        return options
    return options.model_copy(update={"word_timestamps": True})


def render_transcript(transcript: Transcript, options: Options, file_format: str) -> bytes:
    """The transcript as a file in one of `formats.FORMATS`, in UTF-8. Raises KeyError for any other format.

    Costs CPU time on long recordings: call it in a thread.
    """
    style = CueStyle(
        max_line_chars=options.max_line_chars,
        max_lines=options.max_lines,
        max_cps=options.max_cps,
        min_samples=math.ceil(options.min_cue_s * 1000) * SAMPLES_PER_MS,
        max_samples=math.floor(options.max_cue_s * 1000) * SAMPLES_PER_MS,
    )
    cues = shape_cues(
        transcript.segments, transcript.speech, style, transcript.text_language, transcript.samples
    )
    file = BytesIO()  # only this grows with the recording; cues and text are made one by one
    for text in FORMATS[file_format].write(transcript, cues):
        file.write(text.encode())
    return file.getvalue()
