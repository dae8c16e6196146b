"""The language of a recording: its first clips vote, and the others follow. Pure but for the waiting.

If channels are transcribed separately, the first clips of all of them vote on one language.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from app.transcript.timeline import ClipResult
from workers.messages import MAX_CLIP_SAMPLES

VOTERS = 3  # the first clips: an intro in another language, or music, is one clip at most

_Clip = tuple[int, int]  # its channel and its index there


class LanguageVote:
    """Collects the languages that were detected in the first clips of a recording.

    A vote weighs as much as its clip has speech, so the outcome does not depend on the order of the votes.
    The language is certain as soon as the missing votes cannot change it. A clip is known by its channel and
    its index there.
    """

    def __init__(self, channels: Sequence[int] = (0,)) -> None:
        self._weights: dict[_Clip, int] = {}  # of the clips that are going to vote
        self._votes: dict[_Clip, tuple[int, ClipResult]] = {}
        self._abstentions: set[_Clip] = set()
        self._voters = dict.fromkeys(channels, VOTERS)  # of each channel
        self._leader: str | None = None  # of the votes so far
        self._decided = asyncio.Event()
        self._complete = asyncio.Event()

    def announce(self, index: int, speech_samples: int, channel: int = 0) -> None:
        """Clip `index`, with so much speech, is going to vote."""
        self._weights[channel, index] = speech_samples
        self._count()

    def cast(self, index: int, speech_samples: int, result: ClipResult, channel: int = 0) -> None:
        """The vote of clip `index`, with so much speech. Has no effect for any but the first clips."""
        if index < VOTERS:
            self._votes[channel, index] = (speech_samples, result)
            self._count()

    def abstain(self, index: int, channel: int = 0) -> None:
        """Clip `index` has failed: nobody waits for its vote. A vote that it has cast already counts."""
        if index < VOTERS and (channel, index) not in self._votes:
            self._abstentions.add((channel, index))
            self._count()

    def limit(self, clips: int, channel: int = 0) -> None:
        """The channel has no more than so many clips."""
        self._voters[channel] = min(VOTERS, clips)
        self._count()

    async def language(self) -> str | None:
        """The language of the recording, ISO 639-1, once it is certain. None if all abstained."""
        await self._decided.wait()
        return self._leader

    async def outcome(self) -> tuple[str, float]:
        """The language once all have voted, and its probability, the mean of the clips': 0 to 1.

        At least one clip must vote.
        """
        await self._complete.wait()
        language, score = self._ranking()[0]
        return language, score / max(1, sum(weight for weight, _ in self._votes.values()))

    @property
    def elected(self) -> str | None:
        """The language of the recording. None while it is not certain, and if all abstained."""
        return self._leader if self._decided.is_set() else None

    def _ranking(self) -> list[tuple[str, float]]:
        """The languages with votes and their scores, the highest first, equal ones in alphabetical order."""
        scores: dict[str, float] = defaultdict(float)
        for _, (weight, result) in sorted(self._votes.items()):
            for language, probability in result.language_probs or ((result.language, 1.0),):
                scores[language] += weight * probability
        return sorted(scores.items(), key=lambda entry: (-entry[1], entry[0]))

    def _count(self) -> None:
        ranking = self._ranking()
        self._leader = ranking[0][0] if ranking else None
        clips = {(channel, index) for channel, count in self._voters.items() for index in range(count)}
        missing = clips - set(self._votes) - self._abstentions
        if not missing:
            self._complete.set()
            self._decided.set()
            return
        outstanding = sum(self._weights.get(clip, MAX_CLIP_SAMPLES) for clip in missing)
        first, second, *_ = [*(score for _, score in ranking), 0.0, 0.0]
        if first - second > outstanding:
            self._decided.set()
