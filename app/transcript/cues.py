"""Segments to cues: what is shown, in which lines, from when to when. Pure.

Segments decide on time: the first and the last of their words begin and end with them, within the speech in
them. Sentences and pauses decide on text.
"""

from collections.abc import Iterable, Iterator, Sequence

from app.transcript.dialogue import cue_lines
from app.transcript.lines import CueStyle
from app.transcript.overlaps import without_overlap
from app.transcript.passages import passages
from app.transcript.speaker_text import SpeakerPrefix
from app.transcript.timed_text import timed_units
from app.transcript.timing import Cue, timed
from app.transcript.turns import split_turns
from workers.messages import Segment, Span

__all__ = ["Cue", "CueStyle", "shape_cues"]


def shape_cues(
    segments: Iterable[Segment],
    speech: Sequence[Span],
    style: CueStyle,
    language: str,
    samples: int,
    prefix: SpeakerPrefix | None = None,
) -> Iterator[Cue]:
    """The cues of a recording, made one by one, in order, at least `style.min_gap` apart.

    `segments` as `timeline.merge` or `corrections.correct` gives them; `speech`: where the recording has
    speech, ordered, in samples; `language`: ISO 639-1 code of the text; `samples`: length of the recording.
    No cue stays after its end. Each word of the segments is in one cue, in order. No cue is longer than
    `style.max_samples`. At most one passage of 30 s of each speaker waits in memory.

    No line has words of two speakers, and no cue those of three. `prefix`: how the text says who speaks;
    without it, dashes begin the lines of two speakers in one cue, and `Cue.speakers` says the rest.

    A segment timed by hand has cues of its own: they start and end exactly with it, however long or short
    it is, and abutting ones have no gap.
    """
    apart = without_overlap(split_turns(segments))
    units = (timed_units(segment, speech, language, style.max_line_chars) for segment in apart)
    return timed(cue_lines(passages(units, language), style, language, prefix), style, samples)
