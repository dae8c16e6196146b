"""How one clip is heard: window after window, until no speech in it is left unheard. Pure.

`decode_clip` is a generator: it yields the window that it wants decoded and is sent what was heard in it. So
the logic of one clip reads in order, while the worker decodes the windows of many clips in one batch.
The default thresholds are those of openai-whisper's `transcribe.py`.
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace

from workers.messages import SAMPLE_RATE, Clip, ClipResult, Segment, Span
from workers.whisper.words import place_words

SILENT_LOGPROB = -1.0  # with a high no-speech probability, an average below this says that nobody spoke
RETRY_NGRAM_SIZE = 3  # no run of so many tokens may come twice in a second attempt

SAMPLES_PER_TIMESTAMP = SAMPLE_RATE // 50  # a timestamp token counts 20 ms
# Silence kept before speech where listening goes on in the middle of a clip.
_LEAD_SAMPLES = 3 * SAMPLE_RATE // 10
# Unheard speech that is worth another window: after text that was cut off, and after a decoder that
# stopped of its own accord.
_CUT_OFF_SAMPLES = SAMPLE_RATE // 10
_MISSED_SAMPLES = SAMPLE_RATE
_MIN_ADVANCE_SAMPLES = SAMPLE_RATE // 5
_MIN_HALVED_SAMPLES = 4 * SAMPLE_RATE  # less is too little context to hear better in
_HALVINGS = 3  # of a window, of its halves, and of theirs: an eighth of a full one is a sentence


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When to doubt the decoder. The names are those of transformers' `GenerationConfig` for Whisper."""

    compression_ratio: float = 2.4  # above: the text repeats itself
    logprob: float = -1.0  # below: the decoder was guessing
    no_speech: float = 0.6  # above, with a low log-probability: nobody spoke


@dataclass(frozen=True, slots=True)
class Window:
    """The span `[start, end)` of a clip, in samples, to be decoded."""

    start: int
    end: int
    language: str | None
    no_repeat_ngram_size: int = 0


@dataclass(frozen=True, slots=True)
class WindowResult:
    """What the decoder made of a window. Times in samples from the window's start."""

    language: str
    language_probs: tuple[tuple[str, float], ...]
    segments: tuple[Segment, ...]
    tail: Segment | None  # text that the decoder began and did not close with a timestamp
    token_count: int
    avg_logprob: float
    no_speech_prob: float
    compression_ratio: float
    thresholds: Thresholds = Thresholds()

    @property
    def silent(self) -> bool:
        return self.no_speech_prob > self.thresholds.no_speech and self.avg_logprob < SILENT_LOGPROB

    @property
    def repetitive(self) -> bool:
        return self.compression_ratio > self.thresholds.compression_ratio

    @property
    def poor(self) -> bool:
        return not self.silent and (self.repetitive or self.avg_logprob < self.thresholds.logprob)


# Consecutive windows and what was heard in each.
Passage = list[tuple[Window, WindowResult]]
Listening = Generator[Window, WindowResult, Passage]


@dataclass(frozen=True, slots=True)
class Piece:
    """Text tokens between two timestamps, in samples from the window's start."""

    start: int
    end: int
    tokens: tuple[int, ...]  # with the timestamps on either side


def split_at_timestamps(
    tokens: Sequence[int], first_timestamp: int, samples: int
) -> tuple[list[Piece], Piece | None]:
    """The pieces of a decoder's output that it closed, and what it left open.

    `first_timestamp` is the token for 0.00 s. Text that begins in the padding behind the window's
    `samples` was not spoken, and is left out. A window whose only text is open is taken as closed at its end.
    """
    pieces: list[Piece] = []
    begin, text = 0, []
    prefix: tuple[int, ...] = ()
    for token in tokens:
        if token < first_timestamp:
            text.append(token)
            continue
        time = min((token - first_timestamp) * SAMPLES_PER_TIMESTAMP, samples)
        if text:
            if begin < samples:
                pieces.append(Piece(begin, max(time, begin), (*prefix, *text, token)))
            text = []
        begin, prefix = time, (token,)
    if not text or begin >= samples:
        return pieces, None
    rest = Piece(begin, samples, (*prefix, *text))
    return (pieces, rest) if pieces else ([rest], None)


def decode_clip(clip: Clip) -> Generator[Window, WindowResult, ClipResult]:
    """Hear a whole clip: continue behind the last closed timestamp while speech remains."""
    passage = yield from _listen(clip, 0, clip.samples, clip.decoding.language, _HALVINGS)
    first = passage[0][1]
    return ClipResult(first.language, first.language_probs, tuple(_segments(clip, passage)))


def _listen(clip: Clip, start: int, end: int, language: str | None, halvings: int) -> Listening:
    passage: Passage = []
    seek: int | None = start
    while seek is not None:
        attempt = yield from _attempt(clip, Window(seek, end, language), halvings)
        passage += attempt
        language = language or attempt[0][1].language
        seek = _next_seek(clip.speech, *attempt[-1])
    return passage


def _attempt(clip: Clip, window: Window, halvings: int) -> Listening:
    """Hear a window; where that goes badly, in other ways too. The best average log-probability wins."""
    first = yield window
    if clip.decoding.temperature > 0 or not first.poor:
        return [(window, first)]
    window = replace(window, language=first.language)
    attempts: list[Passage] = [[(window, first)]]
    if first.repetitive:
        other = replace(window, no_repeat_ngram_size=RETRY_NGRAM_SIZE)
        second = yield other
        if not second.poor:
            return [(other, second)]
        attempts.append([(other, second)])
    if halvings and window.end - window.start >= _MIN_HALVED_SAMPLES:
        middle = _middle(clip.speech, window.start, window.end)
        left = yield from _listen(clip, window.start, middle, window.language, halvings - 1)
        right = yield from _listen(clip, middle, window.end, window.language, halvings - 1)
        attempts.append(left + right)
    return max(attempts, key=_quality)


def _quality(passage: Passage) -> tuple[bool, float]:
    tokens = sum(heard.token_count + 1 for _, heard in passage)
    logprob = sum(heard.avg_logprob * (heard.token_count + 1) for _, heard in passage) / tokens
    return (not any(heard.repetitive for _, heard in passage), logprob)


def _middle(speech: Iterable[Span], start: int, end: int) -> int:
    """Where to halve a window: in the pause nearest to its middle, if one is in its middle half."""
    middle, quarter = (start + end) // 2, (end - start) // 4
    edges = [edge for span in speech for edge in span if abs(edge - middle) < quarter]
    return min(edges, key=lambda edge: abs(edge - middle), default=middle)


def _next_seek(speech: Sequence[Span], window: Window, heard: WindowResult) -> int | None:
    """Where decoding goes on in the window, or None if nothing worth it is left."""
    if heard.silent:
        return None
    seek = window.start + max((segment.end for segment in heard.segments), default=0)
    left = [(max(start, seek), min(end, window.end)) for start, end in speech]
    left = [(start, end) for start, end in left if start < end]
    enough = _CUT_OFF_SAMPLES if heard.tail else _MISSED_SAMPLES
    if sum(end - start for start, end in left) < enough or seek < window.start + _MIN_ADVANCE_SAMPLES:
        return None
    return max(seek, left[0][0] - _LEAD_SAMPLES)


def _segments(clip: Clip, passage: Passage) -> Iterable[Segment]:
    """The segments of all windows, in samples from the clip's start, words put where speech is."""
    for window, heard in passage:
        if heard.silent:
            continue
        stuck = heard.tail is not None and not any(s.end >= _MIN_ADVANCE_SAMPLES for s in heard.segments)
        for segment in (*heard.segments, heard.tail) if stuck else heard.segments:
            if segment is not None and segment.text.strip():
                yield place_words(_shift(segment, window.start), clip.speech)


def _shift(segment: Segment, samples: int) -> Segment:
    words = tuple(replace(w, start=w.start + samples, end=w.end + samples) for w in segment.words)
    return replace(segment, start=segment.start + samples, end=segment.end + samples, words=words)
