"""Advanced SubStation Alpha, as libass and VSFilter read it."""

from collections.abc import Iterable, Iterator

from app.transcript.cues import Cue
from app.transcript.formats.common import clock, timed_cues
from app.transcript.timeline import Transcript

# One style: white with a black outline, at the bottom centre. Its sizes are pixels of the PlayRes picture;
# players scale it to the real one.
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

# Commands stand in braces or begin with a backslash. Players agree on no escape for these characters, so
# each is written as a similar one.
_SIMILAR = str.maketrans({"{": "(", "}": ")", "\\": "∖"})


def write_ass(_: Transcript, cues: Iterable[Cue]) -> Iterator[str]:
    """ASS; a header without events if there are no cues."""
    yield _HEADER
    for start, end, lines in timed_cues(cues, digits=2):
        text = r"\N".join(line.translate(_SIMILAR) for line in lines)
        yield f"Dialogue: 0,{_clock(start)},{_clock(end)},Default,,0,0,0,,{text}\n"


def _clock(time: int) -> str:
    return clock(time, digits=2, hour_digits=1)
