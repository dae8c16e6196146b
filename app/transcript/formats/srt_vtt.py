"""SubRip and WebVTT."""

from collections.abc import Callable, Sequence

from pysubs2 import SSAEvent, SSAFile

from app.transcript.cues import Cue
from app.transcript.formats.clock import timed_cues
from app.transcript.payload import payload_lines, with_references, without_markup
from app.transcript.timeline import Transcript

# pysubs2 holds text as ASS does, where a backslash may begin a control. This noncharacter, which Unicode
# reserves for use within programs, stands for it on the way through.
_BACKSLASH = "\ufdd0"


def write_srt(_: Transcript, cues: Sequence[Cue]) -> str:
    """SubRip; nothing at all for no cues."""
    return _subtitles(cues, without_markup).to_string("srt", keep_ssa_tags=True).replace(_BACKSLASH, "\\")


def write_vtt(_: Transcript, cues: Sequence[Cue]) -> str:
    """WebVTT; only its header for no cues."""
    return _subtitles(cues, with_references).to_string("vtt", keep_ssa_tags=True).replace(_BACKSLASH, "\\")


def _subtitles(cues: Sequence[Cue], escape: Callable[[Sequence[str]], list[str]]) -> SSAFile:
    subtitles = SSAFile()
    for start_ms, end_ms, lines in timed_cues(cues, payload=payload_lines):
        text = "\n".join(escape(lines)).replace("\\", _BACKSLASH)
        subtitles.append(SSAEvent(start=start_ms, end=end_ms, text=text))
    return subtitles
