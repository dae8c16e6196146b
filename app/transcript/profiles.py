"""The limits that cues keep, by the options and the language of the text. Pure."""

import math

from app.options import Options
from app.transcript.lines import SAMPLES_PER_MS, CueStyle


def cue_style(options: Options, language: str) -> CueStyle:
    """The limits for cues in the language, an ISO 639-1 code."""
    return CueStyle(
        max_line_chars=options.max_line_chars,
        max_lines=options.max_lines,
        max_cps=options.max_cps,
        min_samples=math.ceil(options.min_cue_s * 1000) * SAMPLES_PER_MS,
        max_samples=math.floor(options.max_cue_s * 1000) * SAMPLES_PER_MS,
    )
