"""Decodes one clip window by window, until all of its speech is transcribed. Pure.

`decode_clip` is a generator: it yields the next window to decode and is sent that window's result. So the
code for one clip reads in order, while workers decode windows of many clips in each batch. Positions are
samples of the recording.

Word times come from cross-attention, which drifts over pauses. Segment times and speech spans are more exact,
so words are moved into them.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.engines.window_request import WindowRequest
from app.transcript.timeline import ClipResult
from app.transcription.audio_context import context_s, is_doubtful
from workers.messages import FULL_CONTEXT_S, SAMPLE_RATE, DecodingOptions, Segment, Span, WindowResult, Word

RETRY_NGRAM_SIZE = 3  # a retry may not repeat any run of this many tokens

_LEAD_SAMPLES = 3 * SAMPLE_RATE // 10  # a further window starts this long before the remaining speech
# A further window is decoded if at least so much speech remains:
_CUT_OFF_SAMPLES = SAMPLE_RATE // 10  # behind text without a closing timestamp
_MISSED_SAMPLES = SAMPLE_RATE  # behind a window that the decoder ended by itself
_MIN_ADVANCE_SAMPLES = SAMPLE_RATE // 5  # of a window's last closing timestamp; less is no progress
_MIN_HALVED_SAMPLES = 4 * SAMPLE_RATE  # a shorter window has too little context in its halves
_CLEARLY = 0.001  # a difference of average log-probabilities; scores are rounded to a tenth of it
_MAX_HALVINGS = 3  # down to an eighth of a full window, about a sentence

# What tells the results of a recording's clips apart: first and last sample, the language asked for, and the
# channel, which is 0 for the mix of all.
ClipKey = tuple[int, int, str | None, int]


@dataclass(frozen=True, slots=True)
class ClipRequest:
    """One clip of a recording to be transcribed. Positions are samples of the recording."""

    pcm_path: Path  # the recording: s16le, mono, 16 kHz
    start: int
    end: int
    speech: tuple[Span, ...]
    decoding: DecodingOptions
    late_language: Callable[[], str | None] | None = None  # the elected one, once the audio is read
    speculative: bool = False  # queued while the first clips still decide on the language
    outvoted: bool = False  # has a result in another language; the text after it waits for this one
    min_context_s: float = FULL_CONTEXT_S  # of audio for the encoder, see `audio_context`
    channel: int = 0  # of the recording

    @property
    def key(self) -> ClipKey:
        """Identifies the clip's result among those of its recording with the same options."""
        return (self.start, self.end, self.decoding.language, self.channel)


DecodedWindows = list[tuple[WindowRequest, WindowResult]]  # in order of time
# Yields windows to decode, is sent the result of each, and returns those to use.
WindowGenerator = Generator[WindowRequest, WindowResult, DecodedWindows]


def decode_clip(clip: ClipRequest) -> Generator[WindowRequest, WindowResult, ClipResult]:
    """Decode a clip: each window starts after the last closing timestamp, while enough speech remains.

    Yields the windows to decode, is sent the result of each, and returns the result of the clip.
    """
    windows = yield from _decode_span(_first_window(clip), clip, _MAX_HALVINGS)
    first = windows[0][1]
    return ClipResult(first.language, first.language_probs, tuple(_segments(clip, windows)))


def _first_window(clip: ClipRequest) -> WindowRequest:
    return WindowRequest(
        clip.pcm_path,
        clip.start,
        clip.end,
        clip.speech,
        replace(clip.decoding, context_s=context_s(clip.end - clip.start, clip.min_context_s)),
        late_language=clip.late_language,
        speculative=clip.speculative,
    )


def _further_window(
    window: WindowRequest, clip: ClipRequest, start: int, end: int, language: str
) -> WindowRequest:
    """The window `[start, end)` of a clip, after `window` of the same clip."""
    speech = tuple(
        (max(begin, start), min(stop, end)) for begin, stop in clip.speech if begin < end and stop > start
    )
    decoding = replace(
        window.decoding,
        language=language,
        no_repeat_ngram_size=0,
        context_s=context_s(end - start, clip.min_context_s),
    )
    return replace(window, start=start, end=end, speech=speech, decoding=decoding, continues=True)


def _again(window: WindowRequest, **changes: Any) -> WindowRequest:
    """The same window once more, with other options for decoding."""
    return replace(window, decoding=replace(window.decoding, **changes), continues=True)


def _decode_span(window: WindowRequest, clip: ClipRequest, halvings: int) -> WindowGenerator:
    """Decode the span of `window`, the first window of it. Returns all windows and their results."""
    windows: DecodedWindows = []
    end = window.end
    while True:
        decoded = yield from _decode_with_retries(window, clip, halvings)
        windows += decoded
        seek = _next_seek(clip.speech, *decoded[-1])
        if seek is None:
            return windows
        window = _further_window(window, clip, seek, end, decoded[0][1].language)


def _decode_with_retries(window: WindowRequest, clip: ClipRequest, halvings: int) -> WindowGenerator:
    """Decode a window. A poor result at temperature 0 is retried without repetition, then in halves.

    The first retry counts if it is not poor. Otherwise the best attempt counts, see `_is_better`. `halvings`
    is how often the window may still be halved.
    """
    window, first = yield from _decode_in_context(window)
    if clip.decoding.temperature > 0 or not first.poor:
        return [(window, first)]
    attempts: list[DecodedWindows] = [[(window, first)]]
    if first.repetitive:
        retry = _again(window, language=first.language, no_repeat_ngram_size=RETRY_NGRAM_SIZE)
        second = yield retry
        if not second.poor:
            return [(retry, second)]
        attempts.append([(retry, second)])
    if halvings and window.end - window.start >= _MIN_HALVED_SAMPLES:
        clip = replace(clip, min_context_s=FULL_CONTEXT_S)  # poor already
        middle = _split_point(clip.speech, window.start, window.end)
        halves: DecodedWindows = []
        for start, end in ((window.start, middle), (middle, window.end)):
            half = _further_window(window, clip, start, end, first.language)
            halves += yield from _decode_span(half, clip, halvings - 1)
        attempts.append(halves)
    best, *others = attempts
    for attempt in others:
        best = attempt if _is_better(attempt, best) else best
    return best


def _decode_in_context(
    window: WindowRequest,
) -> Generator[WindowRequest, WindowResult, tuple[WindowRequest, WindowResult]]:
    """Decode a window. A doubtful result of a short audio context is replaced by that of the full one."""
    result = yield window
    if window.decoding.context_s == FULL_CONTEXT_S or not is_doubtful(result):
        return window, result
    full = _again(window, context_s=FULL_CONTEXT_S)
    full_result = yield full
    if full_result.language != result.language:
        # The short context gets a second chance in this language: so the transcript does not depend on
        # whether the language was known when the window's turn came.
        named = _again(window, language=full_result.language)
        result = yield named
        if not is_doubtful(result):
            return named, replace(result, language_probs=full_result.language_probs)
    return full, full_result


def _is_better(attempt: DecodedWindows, earlier: DecodedWindows) -> bool:
    """Whether a later attempt counts: it alone does not repeat itself, or else its log-probability is higher.

    The difference must be clear. Otherwise rounding could choose among attempts that are the same.
    """
    (clean, logprob), (was_clean, earlier_logprob) = _quality(attempt), _quality(earlier)
    return clean > was_clean or (clean == was_clean and logprob > earlier_logprob + _CLEARLY)


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


def _next_seek(speech: Sequence[Span], window: WindowRequest, result: WindowResult) -> int | None:
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


def _segments(clip: ClipRequest, windows: DecodedWindows) -> Iterable[Segment]:
    """The segments of all windows, in samples from the clip's start, with their words moved into speech."""
    for window, result in windows:
        if result.silent:
            continue
        # Without progress no further window follows, so the tail is the only transcript of its speech.
        stuck = result.tail is not None and not any(s.end >= _MIN_ADVANCE_SAMPLES for s in result.segments)
        for segment in (*result.segments, result.tail) if stuck else result.segments:
            if segment is not None and segment.text.strip():
                yield _shift(place_words(_shift(segment, window.start), clip.speech), -clip.start)


def _shift(segment: Segment, samples: int) -> Segment:
    words = tuple(replace(w, start=w.start + samples, end=w.end + samples) for w in segment.words)
    return replace(segment, start=segment.start + samples, end=segment.end + samples, words=words)


def place_words(segment: Segment, speech: Sequence[Span]) -> Segment:
    """`segment` with its words in order, without overlaps, each inside the segment and in speech.

    If an edge of the segment is in speech, the first word starts or the last word ends at that edge.
    All times are in samples from the same origin. A segment without a duration loses its words.
    """
    if not segment.words or segment.end <= segment.start:
        return replace(segment, words=())
    spans = [(max(a, segment.start), min(b, segment.end)) for a, b in speech]
    spans = [(a, b) for a, b in spans if a < b] or [(segment.start, segment.end)]
    words = [_move_into_speech(word, spans) for word in segment.words]
    words[0] = replace(words[0], start=spans[0][0])
    words[-1] = replace(words[-1], end=spans[-1][1])
    placed = []
    earliest = segment.start
    for word in words:
        start = min(max(word.start, earliest), segment.end)
        earliest = min(max(word.end, start), segment.end)
        placed.append(replace(word, start=start, end=earliest))
    return replace(segment, words=tuple(placed))


def _move_into_speech(word: Word, spans: Sequence[Span]) -> Word:
    """The part of a word inside the span with the largest overlap, or else the nearest edge of a span."""
    # Below 0, the overlap is the distance between word and span.
    start, end = max(spans, key=lambda span: min(word.end, span[1]) - max(word.start, span[0]))
    word_start = min(max(word.start, start), end)
    return replace(word, start=word_start, end=max(word_start, min(word.end, end)))
