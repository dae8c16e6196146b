"""When cues are shown, in whole ticks of a file's clock. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from app.transcript.cue_text import plain_lines
from app.transcript.cues import Cue
from app.transcript.lines import SAMPLES_PER_MS

SAMPLES_PER_CS = 10 * SAMPLES_PER_MS  # hundredths of a second are the clock of older formats


def timed_cues(
    cues: Iterable[Cue],
    samples_per_tick: int = SAMPLES_PER_MS,
    payload: Callable[[Sequence[str]], Iterable[str]] = plain_lines,
) -> Iterator[tuple[int, int, list[str]]]:
    """`(start, end, lines)` of each cue with text, in ticks: start < end <= the next start.

    Times are rounded half up. `payload` gives the lines that the file can hold.
    """
    shown_until = 0
    for cue in cues:
        lines = list(payload(cue.lines))
        if lines:
            start = max(_ticks(cue.start, samples_per_tick), shown_until)
            shown_until = max(_ticks(cue.end, samples_per_tick), start + 1)
            yield start, shown_until, lines


def clock(milliseconds: int, decimal_sign: str = ".") -> str:
    """`hh:mm:ss.mmm`; hours have more digits where they need them."""
    seconds, milliseconds = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}{decimal_sign}{milliseconds:03}"


def _ticks(samples: int, samples_per_tick: int) -> int:
    return (samples + samples_per_tick // 2) // samples_per_tick
