"""The decoding of one clip, window by window, until all of its speech is transcribed. Pure.

`decode_clip` is a generator: it yields the next window to decode and is sent that window's result. So the
code for one clip reads in order, while workers decode windows of many clips in each batch. Positions are
samples of the recording.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.engines.window_request import WindowRequest
from app.recording.audio_context import context_s, is_doubtful
from app.recording.prompted import at_sentence_ends, leaves_out_speech, says_more
from app.recording.spoken_languages import (
    LanguageRun,
    decisive_probs,
    examined_part,
    find_runs,
    stretches_of,
)
from app.recording.word_times import place_words
from app.transcript.timeline import ClipResult, parts_by_language
from workers.messages import FULL_CONTEXT_S, SAMPLE_RATE, DecodingOptions, Segment, Span, WindowResult, Word

RETRY_NGRAM_SIZE = 3  # a retry may not repeat any run of this many tokens

_LEAD_SAMPLES = 3 * SAMPLE_RATE // 10  # a further window starts this long before the remaining speech
# A further window is decoded if at least so much speech remains:
_CUT_OFF_SAMPLES = SAMPLE_RATE // 10  # behind text without a closing timestamp
_MISSED_SAMPLES = SAMPLE_RATE // 2  # behind a window that the decoder ended by itself
_MIN_ADVANCE_SAMPLES = SAMPLE_RATE // 5  # of a window's last closing timestamp; less is no progress
_NEAR_SAMPLES = 3 * SAMPLE_RATE // 10  # a timestamp so near to an edge of speech means that edge
_MIN_HALVED_SAMPLES = 4 * SAMPLE_RATE  # a shorter window has too little context in its halves
_CLEARLY = 0.001  # a difference of average log-probabilities; scores are rounded to a tenth of it
_MAX_HALVINGS = 3  # down to an eighth of a full window, about a sentence

# Identifies a result among those of a recording's clips: first and last sample, the language asked for, and
# the channel, which is 0 for the mix of all.
ClipKey = tuple[int, int, str | None, int]


@dataclass(frozen=True, slots=True)
class ClipRequest:
    """One clip of a recording to be transcribed. Positions are samples of the recording."""

    pcm_path: Path  # the recording: s16le, mono, 16 kHz
    start: int
    end: int
    speech: tuple[Span, ...]
    decoding: DecodingOptions
    late_language: Callable[[], str | None] | None = None  # the elected one, once a worker gets it
    speculative: bool = False  # queued while the first clips still decide on the language
    outvoted: bool = False  # has a result in another language; the text after it waits for this one
    min_context_s: float = FULL_CONTEXT_S  # of audio for the encoder, see `audio_context`
    channel: int = 0  # of the recording
    detect_changes: bool = False  # of the language, inside the clip

    @property
    def key(self) -> ClipKey:
        """Identifies the clip's result among those of its recording with the same options."""
        return (self.start, self.end, self.decoding.language, self.channel)


DecodedWindows = list[tuple[WindowRequest, WindowResult]]  # in order of time
# Yields windows to decode, is sent the result of each, and returns those to use.
WindowGenerator = Generator[WindowRequest, WindowResult, DecodedWindows]


def decode_clip(clip: ClipRequest) -> Generator[WindowRequest, WindowResult, ClipResult]:
    """Decode a clip: each window starts after the last closing timestamp, while enough speech remains.

    Yields the windows to decode, is sent the result of each, and returns the result of the clip. Where the
    language may change and does, a window ends, in a pause. Then the result's language is the clip's own,
    which was requested or detected in all of it, and its probabilities are the parts of all.
    """
    window = WindowRequest(
        clip.pcm_path,
        clip.start,
        clip.end,
        clip.speech,
        replace(
            clip.decoding,
            context_s=context_s(clip.end - clip.start, clip.min_context_s),
            word_timestamps=clip.decoding.word_timestamps or clip.decoding.prompted,
        ),
        late_language=clip.late_language,
        speculative=clip.speculative,
    )
    first: WindowResult | None = None
    if clip.detect_changes and clip.speech:
        stretches = stretches_of(clip.speech)
        first = yield replace(window, stretches=stretches)
        runs = yield from _find_runs(window, clip, stretches, first)
        if [run.language for run in runs] != [first.language]:
            windows: DecodedWindows = []
            for run in runs:
                start, end = max(run.start, clip.start), min(run.end, clip.end)
                part = _further_window(window, clip, start, end, run.language)
                windows += yield from _decode_span(part, clip, _MAX_HALVINGS)
            segments = tuple(_segments(clip, windows))
            parts = parts_by_language(segments, first.language)
            return ClipResult(first.language, tuple(parts.items()), segments)
    windows = yield from _decode_span(window, clip, _MAX_HALVINGS, first)
    first = windows[0][1]
    return ClipResult(first.language, first.language_probs, tuple(_segments(clip, windows)))


def _find_runs(
    window: WindowRequest, clip: ClipRequest, stretches: Sequence[Span], first: WindowResult
) -> Generator[WindowRequest, WindowResult, list[LanguageRun]]:
    """The languages of a clip. If its first window suggests a change, each stretch is detected alone.

    `first`: the result of the clip's first window, with the languages of the stretches.
    """
    probs = list(first.stretch_probs or [()] * len(stretches))
    languages = clip.decoding.languages
    runs = find_runs(stretches, probs, first.language, languages, suspects=True)
    if [run.language for run in runs] == [first.language]:
        return runs
    window = replace(window, late_language=None)
    for at, stretch in enumerate(stretches):
        if probs[at]:
            start, end = examined_part(stretch)
            alone = _further_window(window, clip, start, end, None)
            result = yield _again(alone, language_only=True, context_s=context_s(end - start, 0))
            probs[at] = decisive_probs(probs[at], result.language_probs)
    return find_runs(stretches, probs, first.language, languages)


def _further_window(
    window: WindowRequest, clip: ClipRequest, start: int, end: int, language: str | None
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


def _decode_span(
    window: WindowRequest, clip: ClipRequest, halvings: int, first: WindowResult | None = None
) -> WindowGenerator:
    """Decode the span of `window`, the first window of it. Returns all windows and their results.

    `first`: the result of that window, if there is one already.
    """
    windows: DecodedWindows = []
    end = window.end
    while True:
        decoded = yield from _decode_with_retries(window, clip, halvings, first)
        *before, (last, result) = decoded
        result, seek = _next_seek(clip.speech, last, result)
        windows += [*before, (last, result)]
        if seek is None:
            return windows
        window, first = _further_window(window, clip, seek, end, decoded[0][1].language), None


def _decode_with_retries(
    window: WindowRequest, clip: ClipRequest, halvings: int, first: WindowResult | None
) -> WindowGenerator:
    """Decode a window. A poor result at temperature 0 is retried without repetition, then in halves.

    The first retry is for loops, and counts if it is not poor. Otherwise the best attempt counts, see
    `_is_better`. `halvings` is how often the window may still be halved.

    Before that, a result that leaves out speech is retried without the prompt, which counts if it says more.
    """
    window, first = yield from _decode_in_context(window, first)
    if clip.decoding.temperature > 0:
        return [(window, first)]
    if not window.decoding.word_timestamps and first.repetitive:
        # Only the times of words show whether somebody said it so often.
        window = _again(window, language=first.language, word_timestamps=True)
        first = replace((yield window), language_probs=first.language_probs)
    if window.decoding.prompted and leaves_out_speech(window, first):
        plain = _again(window, language=first.language, prompt=None, hotwords=None)
        result = yield plain
        if says_more(result, first):
            return [(plain, replace(result, language_probs=first.language_probs))]
    if not first.poor:
        return [(window, first)]
    attempts: list[DecodedWindows] = [[(window, first)]]
    if first.looping:
        retry = _again(window, language=first.language, no_repeat_ngram_size=RETRY_NGRAM_SIZE)
        second = yield retry
        if second.silent or not second.compressible:  # or else it only spells the same words otherwise
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
    window: WindowRequest, result: WindowResult | None
) -> Generator[WindowRequest, WindowResult, tuple[WindowRequest, WindowResult]]:
    """Decode a window. A doubtful result of a short audio context is replaced by that of the full one."""
    if result is None:
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


def _next_seek(
    speech: Sequence[Span], window: WindowRequest, result: WindowResult
) -> tuple[WindowResult, int | None]:
    """What counts of a window, and where the next one starts; None if too little speech is left in this one.

    A closing timestamp may be late or early by some tenths of a second: next to an edge of speech, it means
    that edge. If the last one is inside of speech, it may divide a word or hide one. Then the text behind the
    last timestamp in a pause is left to the next window.
    """
    if result.silent:
        return result, None
    spans = [(max(start, window.start), min(end, window.end)) for start, end in speech]
    spans = [(start, end) for start, end in spans if start < end]
    seek = window.start + max((segment.end for segment in result.segments), default=0)
    enough = _CUT_OFF_SAMPLES if result.tail else _MISSED_SAMPLES
    edge = _pause_at(seek, spans)
    left = _left(spans, seek if edge is None else min(seek, edge))
    if left < enough or seek < window.start + _MIN_ADVANCE_SAMPLES:
        return result, None
    kept = list(result.segments)
    while edge is None and len(kept) > 1:
        edge = _pause_at(window.start + kept.pop().start, spans)
    if edge is not None and edge > window.start + _MIN_ADVANCE_SAMPLES and _left(spans, edge):
        result, seek = replace(result, segments=tuple(kept), tail=None), edge
    following = min(start for start, end in spans if end > seek)
    return result, max(seek, following - _LEAD_SAMPLES)


def _left(spans: Iterable[Span], position: int) -> int:
    """How much speech there is after a position."""
    return sum(max(0, end - max(start, position)) for start, end in spans)


def _pause_at(position: int, spans: Sequence[Span]) -> int | None:
    """The end of the speech before the pause that `position` is in or next to; None if there is none."""
    for start, end in spans:
        if start + _NEAR_SAMPLES < position < end - _NEAR_SAMPLES:
            return None
    return max((end for _, end in spans if end <= position + _NEAR_SAMPLES), default=None)


def _segments(clip: ClipRequest, windows: DecodedWindows) -> Iterable[Segment]:
    """The segments of all windows, in samples from the clip's start."""
    segments = [
        _shift(segment, window.start - clip.start, result.language if clip.detect_changes else None)
        for window, result in windows
        for text in _texts(result)
        if text.text.strip()
        for segment in (at_sentence_ends(text, result.language) if window.decoding.prompted else (text,))
    ]
    return place_words(segments, [(start - clip.start, end - clip.start) for start, end in clip.speech])


def _texts(result: WindowResult) -> tuple[Segment, ...]:
    """The segments of a window that count."""
    if result.silent:
        return ()
    # Without progress no further window follows, so the tail is the only transcript of its speech.
    stuck = not any(segment.end >= _MIN_ADVANCE_SAMPLES for segment in result.segments)
    return result.texts if stuck else result.segments


def _shift(segment: Segment, samples: int, language: str | None) -> Segment:
    words = tuple(Word(w.text, w.start + samples, w.end + samples, w.probability) for w in segment.words)
    start, end = segment.start + samples, segment.end + samples
    return replace(segment, start=start, end=end, words=words, language=language)
