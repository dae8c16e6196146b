"""Decodes one clip window by window, until all of its speech is transcribed. Pure.

`decode_clip` is a generator: it yields the next window to decode and is sent that window's result. So the
code for one clip reads in order, while the worker decodes the windows of many clips in one batch.
The default thresholds are those of openai-whisper's `transcribe.py`.
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace

from workers.messages import SAMPLE_RATE, Clip, ClipResult, Segment, Span
from workers.whisper.scores import LOWEST_LOGPROB
from workers.whisper.words import place_words

SILENT_LOGPROB = -1.0  # nobody speaks if the average is lower and the no-speech probability is high
RETRY_NGRAM_SIZE = 3  # a retry may not repeat any run of this many tokens

SAMPLES_PER_TIMESTAMP = SAMPLE_RATE // 50  # a timestamp token counts 20 ms
_LEAD_SAMPLES = 3 * SAMPLE_RATE // 10  # a further window starts this long before the remaining speech
# Least remaining speech for which a further window is decoded: after an open tail, and after the decoder
# ended by itself.
_CUT_OFF_SAMPLES = SAMPLE_RATE // 10
_MISSED_SAMPLES = SAMPLE_RATE
_MIN_ADVANCE_SAMPLES = SAMPLE_RATE // 5  # of a window's last closing timestamp; less is no progress
_MIN_HALVED_SAMPLES = 4 * SAMPLE_RATE  # a shorter window has too little context in its halves
_MAX_HALVINGS = 3  # down to an eighth of a full window, about a sentence


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When to doubt the decoder. The names are those of transformers' `GenerationConfig` for Whisper."""

    compression_ratio: float = 2.4  # above: the text repeats itself
    logprob: float = -1.0  # below: the decoder guessed
    no_speech: float = 0.6  # above, with a low log-probability: nobody speaks


@dataclass(frozen=True, slots=True)
class Window:
    """A span `[start, end)` of a clip to decode, in samples."""

    start: int
    end: int
    language: str | None
    no_repeat_ngram_size: int = 0


@dataclass(frozen=True, slots=True)
class WindowResult:
    """The transcript of one window. Times in samples from the window's start."""

    language: str
    language_probs: tuple[tuple[str, float], ...]
    segments: tuple[Segment, ...]
    tail: Segment | None  # text at the end that has no closing timestamp
    token_count: int
    avg_logprob: float
    no_speech_prob: float
    compression_ratio: float
    thresholds: Thresholds = Thresholds()

    @property
    def silent(self) -> bool:
        # A log-probability that overflowed says nothing about silence.
        guessed = LOWEST_LOGPROB < self.avg_logprob < SILENT_LOGPROB
        return guessed and self.no_speech_prob > self.thresholds.no_speech

    @property
    def repetitive(self) -> bool:
        return self.compression_ratio > self.thresholds.compression_ratio

    @property
    def poor(self) -> bool:
        return not self.silent and (self.repetitive or self.avg_logprob < self.thresholds.logprob)


DecodedWindows = list[tuple[Window, WindowResult]]  # in order of time
# Yields windows to decode, is sent the result of each, and returns those to use.
WindowGenerator = Generator[Window, WindowResult, DecodedWindows]


@dataclass(frozen=True, slots=True)
class TimestampedText:
    """Text tokens between two timestamps, in samples from the window's start."""

    start: int
    end: int
    tokens: tuple[int, ...]  # including the timestamps on both sides


def split_at_timestamps(
    tokens: Sequence[int], first_timestamp: int, samples: int
) -> tuple[list[TimestampedText], TimestampedText | None]:
    """Split a decoder's output into texts with a closing timestamp, and a last text without one.

    `first_timestamp` is the token for 0.00 s. Text that starts in the padding after the window's `samples`
    was not spoken, and is dropped. If the only text has no closing timestamp, it ends with the window.
    """
    closed: list[TimestampedText] = []
    start, text = 0, []
    prefix: tuple[int, ...] = ()
    for token in tokens:
        if token < first_timestamp:
            text.append(token)
            continue
        time = min((token - first_timestamp) * SAMPLES_PER_TIMESTAMP, samples)
        if text:
            if start < samples:
                closed.append(TimestampedText(start, max(time, start), (*prefix, *text, token)))
            text = []
        start, prefix = time, (token,)
    if not text or start >= samples:
        return closed, None
    rest = TimestampedText(start, samples, (*prefix, *text))
    return (closed, rest) if closed else ([rest], None)


def decode_clip(clip: Clip) -> Generator[Window, WindowResult, ClipResult]:
    """Decode a clip: each window starts after the last closing timestamp, while enough speech remains.

    Yields the windows to decode, is sent the result of each, and returns the result of the clip.
    """
    windows = yield from _decode_span(clip, 0, clip.samples, clip.decoding.language, _MAX_HALVINGS)
    first = windows[0][1]
    return ClipResult(first.language, first.language_probs, tuple(_segments(clip, windows)))


def _decode_span(clip: Clip, start: int, end: int, language: str | None, halvings: int) -> WindowGenerator:
    """Decode the span `[start, end)` of a clip, in samples. Returns its windows and their results."""
    windows: DecodedWindows = []
    seek: int | None = start
    while seek is not None:
        decoded = yield from _decode_with_retries(clip, Window(seek, end, language), halvings)
        windows += decoded
        language = language or decoded[0][1].language
        seek = _next_seek(clip.speech, *decoded[-1])
    return windows


def _decode_with_retries(clip: Clip, window: Window, halvings: int) -> WindowGenerator:
    """Decode a window. A poor result at temperature 0 is retried without repetition, then in halves.

    The first retry counts if it is not poor. Otherwise the best attempt counts: the one with the highest
    average log-probability, among those without repetition if there are any. `halvings` is how often the
    window may still be halved.
    """
    first = yield window
    if clip.decoding.temperature > 0 or not first.poor:
        return [(window, first)]
    window = replace(window, language=first.language)
    attempts: list[DecodedWindows] = [[(window, first)]]
    if first.repetitive:
        retry = replace(window, no_repeat_ngram_size=RETRY_NGRAM_SIZE)
        second = yield retry
        if not second.poor:
            return [(retry, second)]
        attempts.append([(retry, second)])
    if halvings and window.end - window.start >= _MIN_HALVED_SAMPLES:
        middle = _split_point(clip.speech, window.start, window.end)
        left = yield from _decode_span(clip, window.start, middle, window.language, halvings - 1)
        right = yield from _decode_span(clip, middle, window.end, window.language, halvings - 1)
        attempts.append(left + right)
    return max(attempts, key=_quality)


def _quality(windows: DecodedWindows) -> tuple[bool, float]:
    """Whether no window repeats itself, and the average log-probability of all tokens.

    Each window counts one token more, for the end of its text.
    """
    tokens = sum(result.token_count + 1 for _, result in windows)
    logprob = sum(result.avg_logprob * (result.token_count + 1) for _, result in windows) / tokens
    return (not any(result.repetitive for _, result in windows), logprob)


def _split_point(speech: Iterable[Span], start: int, end: int) -> int:
    """Where to halve a window: at the edge of speech nearest to its middle, or else in its middle.

    The edge must be less than a quarter of the window away from the middle.
    """
    middle, quarter = (start + end) // 2, (end - start) // 4
    edges = [edge for span in speech for edge in span if abs(edge - middle) < quarter]
    return min(edges, key=lambda edge: abs(edge - middle), default=middle)


def _next_seek(speech: Sequence[Span], window: Window, result: WindowResult) -> int | None:
    """Where the next window starts, or None if too little speech is left in this one."""
    if result.silent:
        return None
    seek = window.start + max((segment.end for segment in result.segments), default=0)
    left = [(max(start, seek), min(end, window.end)) for start, end in speech]
    left = [(start, end) for start, end in left if start < end]
    enough = _CUT_OFF_SAMPLES if result.tail else _MISSED_SAMPLES
    if sum(end - start for start, end in left) < enough or seek < window.start + _MIN_ADVANCE_SAMPLES:
        return None
    return max(seek, left[0][0] - _LEAD_SAMPLES)


def _segments(clip: Clip, windows: DecodedWindows) -> Iterable[Segment]:
    """The segments of all windows, in samples from the clip's start, with their words moved into speech."""
    for window, result in windows:
        if result.silent:
            continue
        # Without progress no further window follows, so the tail is the only transcript of its speech.
        stuck = result.tail is not None and not any(s.end >= _MIN_ADVANCE_SAMPLES for s in result.segments)
        for segment in (*result.segments, result.tail) if stuck else result.segments:
            if segment is not None and segment.text.strip():
                yield place_words(_shift(segment, window.start), clip.speech)


def _shift(segment: Segment, samples: int) -> Segment:
    words = tuple(replace(w, start=w.start + samples, end=w.end + samples) for w in segment.words)
    return replace(segment, start=segment.start + samples, end=segment.end + samples, words=words)
