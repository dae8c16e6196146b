"""Advanced SubStation Alpha, as libass and VSFilter read it."""

from collections.abc import Iterable, Iterator, Sequence

from app.transcript.cues import Cue
from app.transcript.formats.clock import SAMPLES_PER_CS, timed_cues
from app.transcript.timeline import Transcript

# One style: white with a black outline, in the middle of the bottom. Its sizes are pixels of the PlayRes
# picture, which players scale to the real one.
_HEADER = """\
[Script Info]
ScriptType: v4.00+
PlayResX: 1920
PlayResY: 1080
WrapStyle: 0
ScaledBorderAndShadow: yes

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, Bold, Italic, \
Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, Alignment, \
MarginL, MarginR, MarginV, Encoding
Style: Default,Arial,64,&H00FFFFFF,&H00FFFFFF,&H00000000,&H80000000,0,0,0,0,100,100,0,0,1,3,1,2,120,120,60,1

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
"""

# Braces hold commands and a backslash begins one. Players agree on no escape for either, so each is written
# as the character most like it.
_LIKENESSES = str.maketrans({"{": "(", "}": ")", "\\": "∖"})


def write_ass(_: Transcript, cues: Iterable[Cue]) -> Iterator[str]:
    """ASS; a header without events for no cues."""
    yield _HEADER
    for start_cs, end_cs, lines in timed_cues(cues, SAMPLES_PER_CS):
        yield f"Dialogue: 0,{_clock(start_cs)},{_clock(end_cs)},Default,,0,0,0,,{_text(lines)}\n"


def _text(lines: Sequence[str]) -> str:
    return r"\N".join(line.translate(_LIKENESSES) for line in lines)


def _clock(centiseconds: int) -> str:
    seconds, centiseconds = divmod(centiseconds, 100)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}.{centiseconds:02}"
