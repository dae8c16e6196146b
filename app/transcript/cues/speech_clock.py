"""Time that passes only while somebody speaks, and short words that speech detection missed. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from app.transcript.text.breaks import ends_sentence
from workers.messages import SAMPLE_RATE, Segment, Span, Word

# Decoder timestamps are some 0.05 s off and speech spans are padded. A segment may therefore include a
# sliver of the speech beyond a pause. Real speech that short is not found as a span of its own.
SLIVER = SAMPLE_RATE // 10  # samples


class SpeechClock:
    """Converts samples of the recording into samples of speech, and back, between two edges.

    If there is no speech between the edges, everything between them counts as speech.
    """

    def __init__(self, start: int, end: int, speech: Sequence[Span], more: Sequence[Span] = ()) -> None:
        """`speech`: ordered spans that do not overlap; those outside the edges are ignored.

        `more`: further speech, in the pauses of it.
        """
        self._spans = sorted([*_speech_within(start, end, speech), *more])
        self._passed = list(accumulate((last - first for first, last in self._spans), initial=0))
        self.length = self._passed[-1]  # samples of speech
        lengths = (after[0] - before[1] for before, after in pairwise(self._spans))
        # `(reading of the clock, samples of the recording)` of each pause, in order.
        self.pauses = list(zip(self._passed[1:-1], lengths, strict=True))

    def reading(self, sample: int) -> int:
        """Samples of speech up to this sample of the recording."""
        index = bisect_right(self._spans, sample, key=lambda span: span[0]) - 1
        if index < 0:
            return 0
        first, last = self._spans[index]
        return self._passed[index] + min(sample, last) - first

    def begins(self, passed: int) -> int:
        """The sample at which speech goes on after `passed` samples of it: at a pause, its end."""
        index = min(bisect_right(self._passed, passed) - 1, len(self._spans) - 1)
        return self._spans[index][0] + passed - self._passed[index]

    def ends(self, passed: int) -> int:
        """The sample at which `passed` samples of speech are over: at a pause, its start."""
        index = max(bisect_left(self._passed, passed) - 1, 0)
        return self._spans[index][0] + passed - self._passed[index]


def _speech_within(start: int, end: int, speech: Sequence[Span]) -> list[Span]:
    """The speech from start to end, without slivers at the edges; the span itself if there is none."""
    first = bisect_right(speech, start, key=lambda span: span[1])
    last = bisect_left(speech, end, key=lambda span: span[0])
    spans = [(max(begin, start), min(finish, end)) for begin, finish in speech[first:last]]
    spans = [(begin, finish) for begin, finish in spans if begin < finish]
    if len(spans) > 1 and speech[first][0] < start and spans[0][1] - start < SLIVER:
        del spans[0]
    if len(spans) > 1 and speech[last - 1][1] > end and end - spans[-1][0] < SLIVER:
        del spans[-1]
    return spans or [(start, end)]


_LONGEST = 3 * SAMPLE_RATE // 10  # samples of a word
_LONGEST_RUN = 2 * SAMPLE_RATE  # samples
_AGREEMENT = SAMPLE_RATE // 3  # samples between the start of the segment and of its first word
_CREDIBLE = SAMPLE_RATE // 20  # samples: words with wrong times often have almost none


def missed_speech(segment: Segment, clock: SpeechClock, language: str) -> list[Span]:
    """Runs of short words that lie in a pause and begin a sentence, in order.

    Word times alone are weak evidence. At the start of the segment the decoder must agree with them; inside
    it, the sentence before has ended, and the word has a credible length.
    """
    runs: list[Span] = []
    is_open = False
    before: Word | None = None
    for word in segment.words:
        length = word.end - word.start
        if is_open:
            start = runs[-1][0]
        elif before is None:
            start = segment.start if abs(word.start - segment.start) <= _AGREEMENT else word.end
        else:
            begins = length >= _CREDIBLE and ends_sentence(before.text, word.text, language)
            start = word.start if begins else word.end
        in_pause = start < word.end and clock.reading(start) == clock.reading(word.end)
        if in_pause and length <= _LONGEST and word.end - start <= _LONGEST_RUN:
            runs[len(runs) - is_open :] = [(start, word.end)]
            is_open = True
        else:
            is_open = False
        before = word
    return runs
