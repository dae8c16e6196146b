"""Advanced SubStation Alpha, as libass and VSFilter read it."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from app.transcript.cues.timing import Cue
from app.transcript.formats.common import (
    FileCue,
    FileStyle,
    Run,
    centiseconds,
    clock,
    plain_lines,
    runs_of,
    timed_cues,
)
from app.transcript.text.direction import embed_ambiguous
from app.transcript.timeline import Transcript

# White with a black outline, at the bottom centre. Sizes are pixels of the PlayRes picture; players scale it
# to the real one. Words of a karaoke have the secondary colour until they are spoken.
_STYLE = """\
Style: {name},Arial,64,&H00{colour},&H00A0A0A0,&H00000000,&H80000000,0,0,0,0,100,100,0,0,1,3,1,2,120,120,60,1
"""
_HEADER, _EVENTS = Path(__file__).with_suffix(".txt").read_text("utf-8").split("{styles}\n")

# Of speakers, as BBGGRR: first the four of the BBC Subtitle Guidelines (white, yellow, cyan, green), then
# others that are as bright. They repeat if more people speak.
_COLOURS = ("FFFFFF", "00FFFF", "FFFF00", "00FF00", "60B0FF", "D0A0FF", "FFC890", "A0E0D0")

# Commands stand in braces or begin with a backslash. Players agree on no escape for these characters, so
# each is written as a similar one.
_SIMILAR = str.maketrans({"{": "(", "}": ")", "\\": "∖"})
_IN_FIELD = str.maketrans(",", "‚")  # a comma ends a field


def write_ass(transcript: Transcript, cues: Iterable[Cue], style: FileStyle) -> Iterator[str]:
    """ASS; a header without events if there are no cues. `word_level`: karaoke, by the times of the words.

    Each speaker has a style, and events name who speaks. Names of styles are numbers: commas and braces in
    the name of a speaker would end them.
    """
    styles = {"": "Default"}  # by the name of the speaker
    events = []
    for cue in ass_cues(cues, style):
        lines = _karaoke(cue) if style.word_level else cue.lines
        marked = embed_ambiguous(cue.lines, lines, cue.language or transcript.text_language)
        names = [styles.setdefault(name, f"Speaker {len(styles)}") for name in cue.speakers]
        text = _styled(marked, names)
        times = ",".join(clock(time, digits=2, hour_digits=1) for time in (cue.start, cue.end))
        speakers = "; ".join(dict.fromkeys(filter(None, cue.speakers))).translate(_IN_FIELD)
        events.append(f"Dialogue: 0,{times},{names[0]},{speakers},0,0,0,,{text}\n")
    yield _HEADER
    for number, name in enumerate(styles.values()):
        yield _STYLE.format(name=name, colour=_COLOURS[max(number - 1, 0) % len(_COLOURS)])
    yield _EVENTS
    yield from events


def ass_cues(cues: Iterable[Cue], style: FileStyle) -> Iterator[FileCue]:
    return timed_cues(cues, 100, lambda lines: [line.translate(_SIMILAR) for line in plain_lines(lines)])


def _styled(lines: Sequence[str], styles: Sequence[str]) -> str:
    """The text of an event that begins in the first style."""
    text = lines[0]
    for line, before, style in zip(lines[1:], styles, styles[1:], strict=False):
        text += rf"\N{line}" if style == before else rf"\N{{\r{style}}}{line}"
    return text


def _karaoke(cue: FileCue) -> list[str]:
    """The lines of a cue with a `{\\k}` before each run, in centiseconds. They last as long as the cue.

    Pauses are empty. A cue without word times has no karaoke.
    """
    at = cue.start

    def syllable(run: Run) -> str:
        nonlocal at
        if run.unit is None:
            return run.text
        start = min(max(centiseconds(run.unit.start), at), cue.end)
        end = min(max(centiseconds(run.unit.end), start), cue.end)
        pause = _duration(start - at)
        at = end
        return f"{pause}{{\\k{end - start}}}{run.text}"

    all_runs = runs_of(cue.lines, cue.units)
    lines = ["".join(map(syllable, runs)) for runs in all_runs]
    if any(run.unit for runs in all_runs for run in runs):
        lines[-1] += _duration(cue.end - at)
    return lines


def _duration(length: int) -> str:
    return f"{{\\k{length}}}" if length else ""
