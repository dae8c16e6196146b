"""What a prompt or hot words do to a window's text, and how it is mended. Pure.

After other text, the decoder leaves out sentences, sure of it: those that the prompt has too, and all after
the first one. And it writes the sentences of a window without timestamps between them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from app.engines.window_request import WindowRequest
from app.recording.audio_context import text_of
from app.recording.word_times import letter_count
from app.transcript.cues.speech_clock import SpeechClock
from app.transcript.text.breaks import ends_sentence
from workers.messages import SAMPLE_RATE, Segment, WindowResult, Word

# Nobody needs more for a word: a second for one of five letters.
_WORD_SAMPLES = 2 * SAMPLE_RATE // 5
_LETTER_SAMPLES = 3 * SAMPLE_RATE // 25
_LEFT_OUT_SAMPLES = SAMPLE_RATE  # of speech beside the words
_LEFT_OUT_IF_CLOSED = 1 / 3  # a text with a closing timestamp is rarely incomplete


def leaves_out_speech(window: WindowRequest, result: WindowResult) -> bool:
    """Whether much of the speech is in no word: a third, or a second if the text has no closing timestamp.

    Speech counts to the word before it, but no more than that may take. Without words, the text is one.
    """
    if result.silent or not window.speech:
        return False
    said: Sequence[Segment | Word] = [w for text in result.texts for w in text.words] or result.texts
    speech = [(start - window.start, end - window.start) for start, end in window.speech]
    clock = SpeechClock(0, window.samples, speech)
    starts = [0, *(clock.reading(text.start) for text in said[1:]), clock.length]
    in_words = sum(
        min(end - start, _WORD_SAMPLES + _LETTER_SAMPLES * letter_count(text.text))
        for text, (start, end) in zip(said, pairwise(starts), strict=False)
    )
    return clock.length - in_words >= (
        clock.length * _LEFT_OUT_IF_CLOSED if result.segments else _LEFT_OUT_SAMPLES
    )


def says_more(result: WindowResult, other: WindowResult) -> bool:
    """Whether the result has more letters than the other one, and is neither silent nor poor."""
    return not (result.silent or result.poor) and letter_count(text_of(result)) > letter_count(text_of(other))


def at_sentence_ends(segment: Segment, language: str) -> Iterator[Segment]:
    """The segment, divided after each sentence if it has words: each part has their times.

    A sentence whose words have no duration stays with the next one.
    """
    words = segment.words
    starts = [0]
    for at in range(1, len(words)):
        has_time = words[starts[-1]].start < words[at - 1].end and words[at].start < segment.end
        if has_time and ends_sentence(words[at - 1].text, words[at].text, language):
            starts.append(at)
    if len(starts) == 1:
        yield segment
        return
    for first, end in pairwise([*starts, len(words)]):
        yield replace(
            segment,
            start=words[first].start if first else segment.start,
            end=words[end - 1].end if end < len(words) else segment.end,
            text="".join(word.text for word in words[first:end]),
            tokens=(),  # those of the model say all of it, with its times
            words=words[first:end],
        )
