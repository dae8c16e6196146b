"""The ordered timeline of a recording, from the results of its clips. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from workers.messages import SAMPLE_RATE, LanguageProbs, Segment, Span, Warnings, Word, seconds

# A segment whose clip leaves it no time keeps its text and lasts this long.
SHORTEST_SEGMENT = SAMPLE_RATE // 50  # samples: one step of Whisper's timestamps, 20 ms

NO_LANGUAGE = "und"  # ISO 639-2: nobody speaks, so that is not determined

S = TypeVar("S", bound=Segment)


@dataclass(frozen=True, slots=True)
class ClipResult:
    """The transcript of one clip. Times in samples from the clip's start."""

    language: str  # ISO 639-1: the requested one, or the likeliest in all of it
    # Likeliest first; empty if one was requested. If it was found that several are spoken, their parts.
    language_probs: LanguageProbs
    segments: tuple[Segment, ...]

    @property
    def spoken_language(self) -> str:
        """The language of most of it."""
        return next(iter(parts_by_language(self.segments, self.language)), self.language)


@dataclass(frozen=True, slots=True)
class Transcript:
    """The transcription of a recording. Times in samples from its start."""

    task: str
    model: str
    language: str  # ISO 639-1 code of what is spoken, or `NO_LANGUAGE`
    samples: int  # length of the recording, or of what precedes the end of the part that was transcribed
    speech: tuple[Span, ...]  # where the recording has speech
    segments: Sequence[Segment]
    failed_spans: tuple[Span, ...] = ()  # what could not be transcribed
    clips: tuple[Span, ...] = ()  # that were transcribed, in order; empty if it is not known
    start: int = 0  # of the part that was transcribed
    # Where people have changed the transcript. None: where it differs from the original.
    touched: tuple[Span, ...] | None = None
    warnings: Warnings = ()  # about the recording

    @property
    def seconds(self) -> float:
        """The length of the recording."""
        return seconds(self.samples)

    @property
    def transcribed_s(self) -> float:
        """The length of the part that was transcribed, without what failed."""
        return seconds(self.samples - self.start - sum(end - start for start, end in self.failed_spans))

    @property
    def languages(self) -> dict[str, float] | None:
        """If several are spoken: each one, ISO 639-1, and its part of the segments' time, most first."""
        parts = parts_by_language(self.segments, self.language)
        return parts if len(parts) > 1 else None

    @property
    def text_language(self) -> str:
        """ISO 639-1 code of the text: English for a translation."""
        return "en" if self.task == "translate" else self.language

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments).strip()

    @property
    def words(self) -> tuple[Word, ...]:
        return tuple(word for segment in self.segments for word in segment.words)


def samples_by_language(segments: Iterable[Segment], language: str) -> Counter[str]:
    """How long the segments of each language last; `language`: of those that name none."""
    samples: Counter[str] = Counter()
    for segment in segments:
        samples[segment.language or language] += max(1, segment.end - segment.start)
    return samples


def parts_by_language(segments: Iterable[Segment], language: str) -> dict[str, float]:
    """The part of the segments' time that is in each language, most first; `language`: as above."""
    samples = samples_by_language(segments, language)
    return {spoken: round(count / samples.total(), 4) for spoken, count in samples.most_common()}


def place_segments(segments: Iterable[Segment], clip: Span) -> tuple[Segment, ...]:
    """The segments of a clip, in samples of the recording instead of the clip.

    They are ordered, each has start < end, none overlaps the next, each is inside the clip, and words are
    inside their segment. Text is never lost, whatever the times; only segments without text are dropped.
    Clips of a transcript do not overlap, so in their order they make one timeline.
    """
    first, last = clip
    spoken = [segment for segment in segments if segment.text.strip()]
    spoken.sort(key=lambda segment: min(max(segment.start + first, first), last))
    return tuple(in_bounds(spoken, clip, first))


def joined_spans(spans: Iterable[Span], gap: int = 0) -> list[Span]:
    """Ordered spans; those that are at most `gap` apart become one."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and start - joined[-1][1] <= gap:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def in_bounds(segments: Sequence[S], bounds: Span, origin: int = 0) -> list[S]:
    """Ordered segments without overlap inside the bounds: a segment ends when the next one starts.

    Starts move only if a segment would have no time at all. `origin`: the sample from which the times of the
    segments count so far.
    """
    first, last = bounds[0], max(bounds[1], bounds[0] + 1)
    if len(segments) > last - first:  # fewer samples than segments
        segments = [_joined(segments)]
    count = len(segments)
    shortest = min(SHORTEST_SEGMENT, (last - first) // max(count, 1))
    starts: list[int] = []
    for index, segment in enumerate(segments):
        earliest = starts[-1] + shortest if starts else first
        latest = last - (count - index) * shortest
        starts.append(min(max(segment.start + origin, earliest), latest))
    limits = [*starts, last][1:]
    return [
        moved(segment, start, min(max(segment.end + origin, start + shortest), limit), origin)
        for segment, start, limit in zip(segments, starts, limits, strict=True)
    ]


def _joined(segments: Sequence[S]) -> S:
    return replace(
        segments[0],
        end=segments[-1].end,
        text="".join(segment.text for segment in segments),
        tokens=tuple(token for segment in segments for token in segment.tokens),
        words=tuple(word for segment in segments for word in segment.words),
    )


def moved(segment: S, start: int, end: int, origin: int = 0) -> S:
    """The segment from `start` to `end`, with its words in order inside it. A word may last no time.

    `origin`: the sample from which the times of the words count so far.
    """
    words = [word for word in segment.words if word.text]
    starts: list[int] = []
    at = start
    for word in words:
        # Compared, not by `max` and `min`: these lines run for each word.
        begin = word.start + origin
        if begin > at:
            at = begin if begin < end else end
        starts.append(at)
    placed = []
    for word, at, limit in zip(words, starts, [*starts, end][1:], strict=True):
        finish = word.end + origin
        if finish > limit:
            finish = limit
        placed.append(Word(word.text, at, finish if finish > at else at, word.probability))
    return replace(segment, start=start, end=end, words=tuple(placed))
