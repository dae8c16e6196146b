"""The lines of cues, in which people may speak one after the other, or at once. Pure.

Each speaker's passages are split into cues by themselves, and these are put in order by their start. Then two
cues that follow each other are merged into a single one with a line for each speaker, if each fits its line,
both fit the longest time, and one is better than two: always if they overlap in time, otherwise if one of
them would be too short to read. Cues that overlap for long are split into cues of one line first. A cue that
overlaps the one before it, and cannot join it, waits for its end (`timing`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from app.transcript.cues.lines import CueStyle, Lines, break_lines, count_lines
from app.transcript.cues.passages import PAUSE, Passage
from app.transcript.cues.split import CUE_COST, LINGER, CueUnits, cheapest_ends, cost_of_shortness, split
from app.transcript.cues.timed_text import TimedText
from app.transcript.text.breaks import begins_with_dash, begins_with_minus, is_sound
from app.transcript.text.scripts import SPACES, WidthIndex, width
from app.transcript.text.speaker_text import SpeakerPrefix, dashes
from workers.messages import SAMPLE_RATE

# On the scale of `split`.
_TWO_SPEAKERS = 70  # for a cue in which two people speak, as for the end of a sentence inside one
_DELAY = 1000  # for each second that a cue starts later than its speech
_UNJOINED = 10_000  # for a cue that begins at a mark `join`

# Who speaks longer than this while somebody else does gets cues of one line, so that both are read in time.
_LONG_OVERLAP = 6 * SAMPLE_RATE // 5  # samples
_SHORTEST_NAME = 8  # columns, with the colon and the space
_LONGEST_RUN = 50  # cues that wait until it is known which of them become one


def cue_lines(
    passages: Iterable[Passage], style: CueStyle, language: str, prefix: SpeakerPrefix | None
) -> Iterator[Lines]:
    """The lines of each cue of the passages, which are ordered by their start.

    `prefix` says who speaks. Without one, the lines of two speakers in a cue begin with dashes.
    """
    dialogue = _Dialogue(style, language, prefix)
    for run in dialogue.runs(dialogue.in_order(dialogue.split(passages))):
        for cues in dialogue.shared(run) if len(run) > 1 else [run]:
            yield from dialogue.lines(cues)


class _Dialogue:
    """How the cues of speakers are split, which of them become one, and how their text says who speaks."""

    def __init__(self, style: CueStyle, language: str, prefix: SpeakerPrefix | None) -> None:
        self._style = style
        self._language = language
        self._prefix = prefix
        self._is_repeated = prefix is not None and prefix.is_repeated
        self._named: str | None = None  # the speaker whom the text has named last

    def split(self, passages: Iterable[Passage]) -> Iterator[Sequence[CueUnits]]:
        """The units of each cue of each passage. The first line of a turn leaves space for a name."""
        before: str | None = None
        for passage in passages:
            first = passage[0]
            style = self._style.of(first.language)
            name = self._name(first)
            if not name:
                yield split(passage, style)
            elif self._is_repeated:
                yield split(passage, _narrowed(style, width(name)))
            elif first.speaker == before:
                yield split(passage, style)
            else:
                cues = split((_led(first, name), *passage[1:]), style)
                yield [(first, *cues[0][1:]), *cues[1:]]
            before = first.speaker

    def in_order(self, passages: Iterable[Sequence[CueUnits]]) -> Iterator[CueUnits]:
        """The cues of all passages, ordered by their start; those of one speaker in the order they have."""
        waiting: list[CueUnits] = []
        for cues in passages:
            first = cues[0][0]
            if all(cue[0].speaker == first.speaker for cue in waiting):
                yield from waiting
                waiting = list(cues)
                continue
            shorter = self._in_short_lines(cues, waiting)
            waiting = sorted([*self._in_short_lines(waiting, cues), *shorter], key=_start)
            begun = sum(_start(cue) <= first.start for cue in waiting)
            yield from waiting[:begun]
            del waiting[:begun]
        yield from waiting

    def runs(self, cues: Iterable[CueUnits]) -> Iterator[list[CueUnits]]:
        """The cues in runs: only neighbours in a run may become one."""
        run: list[CueUnits] = []
        for cue in cues:
            if run and (len(run) >= _LONGEST_RUN or not self._may_share(run[-1], cue)):
                yield run
                run = []
            run.append(cue)
        if run:
            yield run

    def _in_short_lines(self, cues: Sequence[CueUnits], others: Sequence[CueUnits]) -> list[CueUnits]:
        """The cues, split into cues of one line where somebody else speaks at once for long."""
        result: list[CueUnits] = []
        for cue in cues:
            if self._style.max_lines > 1 and any(_overlap(cue, other) >= _LONG_OVERLAP for other in others):
                lead = max(width(self._lead(cue[0], place)) for place in (0, 1))
                result += split(cue, replace(_narrowed(self._style.of(cue[0].language), lead), max_lines=1))
            else:
                result.append(cue)
        return result

    def _may_share(self, before: CueUnits, after: CueUnits) -> bool:
        """Whether two cues that follow each other can be one, with a line each."""
        first, second = before[0], after[0]
        if first.speaker == second.speaker or self._style.max_lines < 2 or second.mark == "break":
            return False
        return (
            first.language == second.language
            and not (first.hand_times or second.hand_times)
            and (second.start - before[-1].end < PAUSE or second.mark == "join")
            and max(before[-1].end, after[-1].end) - first.start <= self._style.max_samples
            and not (is_sound(first.text) or is_sound(second.text))
            and self._fits_line(before, 0)
            and self._fits_line(after, 1)
        )

    def shared(self, run: Sequence[CueUnits]) -> list[Sequence[CueUnits]]:
        """The cues of a run, alone or two together, at the least cost."""

        def united(begin: int) -> Iterator[tuple[int, int]]:
            for end in range(begin + 1, min(begin + 2, len(run)) + 1):
                yield end, self._cost(run, begin, end)

        ends = cheapest_ends(len(run), united)
        return [run[begin:end] for begin, end in pairwise([0, *ends])]

    def lines(self, cues: Sequence[CueUnits]) -> Iterator[Lines]:
        """The lines of one cue, or of several if one is too long with the name of its speaker."""
        cue, named, self._named = cues[0], self._named, cues[-1][0].speaker
        if len(cues) == 2:
            yield tuple(
                (_led(each[0], self._lead(each[0], place, named)), *each[1:])
                for place, each in enumerate(cues)
            )
            return
        name = "" if cue[0].speaker == named and not self._is_repeated else self._name(cue[0])
        style = self._style.of(cue[0].language)
        if not name:
            yield break_lines(cue, style.max_line_chars)
            return
        first = _led(cue[0], name)
        if self._is_repeated:  # `split` has left space for it
            (_, *rest), *others = break_lines(cue, _narrowed(style, width(name)).max_line_chars)
            yield ((first, *rest), *others)
        else:
            units = (first, *cue[1:])
            parts = [units] if self._fits(units) else split(units, style)
            yield from (break_lines(part, style.max_line_chars) for part in parts)

    def _name(self, unit: TimedText) -> str:
        """What names the speaker before the unit; empty if nothing does.

        It takes half a line at most, and leaves space for the unit unless that leaves no name to recognise.
        """
        if self._prefix is None or unit.speaker is None:
            return ""
        columns = self._style.of(unit.language).max_line_chars
        left = columns - width(unit.text.strip(SPACES))
        most = min(columns // 2, max(left, _SHORTEST_NAME))
        return self._prefix.of(unit.speaker, most, unit.language or self._language)

    def _lead(self, unit: TimedText, place: int, named: str | None = None) -> str:
        """What begins a line in a cue of two speakers."""
        if self._prefix is not None and unit.speaker is not None:
            is_named = unit.speaker == named and place == 0 and not self._is_repeated
            return "" if is_named else self._name(unit)
        dash = dashes(unit.language or self._language)[place]
        if begins_with_dash(unit.text):
            return ""
        return f"{dash} " if dash == "-" and begins_with_minus(unit.text) else dash

    def _fits_line(self, cue: CueUnits, place: int) -> bool:
        units = (_led(cue[0], self._lead(cue[0], place)), *cue[1:])
        widths = WidthIndex([unit.text for unit in units])
        limit = self._style.of(cue[0].language).max_line_chars
        return widths.between(0, len(units)) <= limit and count_lines(units, widths, limit) == 1

    def _fits(self, units: CueUnits) -> bool:
        widths = WidthIndex([unit.text for unit in units])
        return (
            count_lines(units, widths, self._style.of(units[0].language).max_line_chars)
            <= self._style.max_lines
        )

    def _cost(self, run: Sequence[CueUnits], begin: int, end: int) -> int:
        """The cost of one cue for those from `begin` to `end`.

        It starts `wait` late, after the cue before it, and may last until `latest`.
        """
        spoken = max(cue[-1].end for cue in run[begin:end])
        latest = max(run[end][0].start - self._style.min_gap, spoken) if end < len(run) else spoken + LINGER
        start = run[begin][0].start
        wait = max(run[begin - 1][-1].end - start, 0) if begin else 0
        cost = CUE_COST + _TWO_SPEAKERS * (end - begin - 1) + _DELAY * wait // SAMPLE_RATE
        cost += _UNJOINED * (begin > 0 and run[begin][0].mark == "join")
        return cost + cost_of_shortness(latest - start - wait)


def _overlap(cue: CueUnits, other: CueUnits) -> int:
    """How long two people speak at once."""
    if cue[0].speaker == other[0].speaker:
        return 0
    return min(cue[-1].end, other[-1].end) - max(cue[0].start, other[0].start)


def _start(cue: CueUnits) -> int:
    return cue[0].start


def _narrowed(style: CueStyle, by: int) -> CueStyle:
    columns = style.max_line_chars
    return replace(style, max_line_chars=max(columns - by, columns // 2))


def _led(unit: TimedText, lead: str) -> TimedText:
    """The unit with text before it."""
    return replace(unit, text=lead + unit.text.lstrip(SPACES)) if lead else unit
