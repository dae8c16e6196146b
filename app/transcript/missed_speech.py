"""Short words that speech detection missed. Pure.

Speech detection drops what is shorter than 250 ms, such as `Ha!`. A cue would start with the word after it.
"""

from app.transcript.break_points import ends_sentence
from app.transcript.speech_clock import SpeechClock
from workers.messages import SAMPLE_RATE, Segment, Span, Word

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
