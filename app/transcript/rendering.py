"""A transcript as a file, with cues as the options ask for them."""

from io import BytesIO

from app.options import Options
from app.transcript.cues import shape_cues
from app.transcript.formats import FORMATS
from app.transcript.profiles import cue_style
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
    language = transcript.text_language
    cues = shape_cues(
        transcript.segments, transcript.speech, cue_style(options, language), language, transcript.samples
    )
    file = BytesIO()  # only this grows with the recording; cues and text are made one by one
    for text in FORMATS[file_format].write(transcript, cues):
        file.write(text.encode())
    return file.getvalue()
