"""Which language a recording is in: its first clips decide, and the rest follow. Pure but for the waiting."""

import asyncio
from collections import defaultdict

from workers.messages import ClipResult

VOTERS = 3  # the first clips; an intro in another language, or music, is one clip at most


class LanguageVote:
    """Collects what the first clips of a recording were detected to be in.

    Each vote weighs as much as the clip has speech, so the outcome does not depend on who votes first.
    """

    def __init__(self) -> None:
        self._votes: dict[int, tuple[int, ClipResult]] = {}
        self._voters = VOTERS
        self._decided = asyncio.Event()

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
        """The language of the recording, ISO 639-1, once all have voted. At least one clip must."""
        return (await self.outcome())[0]

    async def outcome(self) -> tuple[str, float]:
        """The same, and how likely it is: the mean of the clips' probabilities, 0 to 1."""
        await self._decided.wait()
        return self._count_out()

    @property
    def elected(self) -> str | None:
        """The language of the recording, if all have voted."""
        return self._count_out()[0] if self._decided.is_set() and self._votes else None

    def _count_out(self) -> tuple[str, float]:
        scores: dict[str, float] = defaultdict(float)
        for _, (weight, result) in sorted(self._votes.items()):
            for language, probability in result.language_probs or ((result.language, 1.0),):
                scores[language] += weight * probability
        elected = max(sorted(scores), key=scores.__getitem__)
        return elected, scores[elected] / max(1, sum(weight for weight, _ in self._votes.values()))

    def _count(self) -> None:
        if len(self._votes) >= self._voters:
            self._decided.set()
