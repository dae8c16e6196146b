"""Which language a recording is in: its first clips decide, and the rest follow. Pure but for the waiting."""

import asyncio
from collections import defaultdict

from workers.messages import MAX_CLIP_SAMPLES, ClipResult

VOTERS = 3  # the first clips; an intro in another language, or music, is one clip at most


class LanguageVote:
    """Collects what the first clips of a recording were detected to be in.

    Each vote weighs as much as the clip has speech, so the outcome does not depend on who votes first; and
    once those that are yet to come cannot change it, nobody has to wait for them.
    """

    def __init__(self) -> None:
        self._weights: dict[int, int] = {}  # of those that are known to vote
        self._votes: dict[int, tuple[int, ClipResult]] = {}
        self._voters = VOTERS
        self._decided = asyncio.Event()
        self._complete = asyncio.Event()

    def announce(self, index: int, speech_samples: int) -> None:
        """Clip `index`, which has so much speech, is going to vote."""
        self._weights[index] = speech_samples
        self._count()

    def cast(self, index: int, speech_samples: int, result: ClipResult) -> None:
        """The vote of clip `index`, which has so much speech; only those of the first clips count."""
        if index < VOTERS:
            self._votes[index] = (speech_samples, result)
            self._count()

    def limit(self, clips: int) -> None:
        """There are no more than so many clips in the recording."""
        self._voters = min(VOTERS, clips)
        self._count()

    async def language(self) -> str:
        """The language of the recording, ISO 639-1, once it is certain. At least one clip must vote."""
        await self._decided.wait()
        return self._leader()[0]

    async def outcome(self) -> tuple[str, float]:
        """The same once all have voted, and its probability, the mean of the clips': 0 to 1."""
        await self._complete.wait()
        language, score = self._leader()
        return language, score / max(1, sum(weight for weight, _ in self._votes.values()))

    @property
    def elected(self) -> str | None:
        """The language of the recording, if that is certain."""
        return self._leader()[0] if self._decided.is_set() and self._votes else None

    def _scores(self) -> dict[str, float]:
        scores: dict[str, float] = defaultdict(float)
        for _, (weight, result) in sorted(self._votes.items()):
            for language, probability in result.language_probs or ((result.language, 1.0),):
                scores[language] += weight * probability
        return scores

    def _leader(self) -> tuple[str, float]:
        scores = self._scores()
        language = max(sorted(scores), key=scores.__getitem__)
        return language, scores[language]

    def _count(self) -> None:
        if len(self._votes) >= self._voters:
            self._complete.set()
            self._decided.set()
            return
        missing = set(range(self._voters)) - set(self._votes)
        to_come = sum(self._weights.get(index, MAX_CLIP_SAMPLES) for index in missing)
        first, second, *_ = [*sorted(self._scores().values(), reverse=True), 0.0, 0.0]
        if first - second > to_come:
            self._decided.set()
