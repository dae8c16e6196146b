import asyncio

from app.language_vote import LanguageVote
from workers.messages import ClipResult


def result(**probs: float) -> ClipResult:
    ranked = tuple(sorted(probs.items(), key=lambda pair: -pair[1]))
    return ClipResult(ranked[0][0], ranked, ())


async def elect(*votes: tuple[int, ClipResult], clips: int | None = None, reverse: bool = False) -> str:
    vote = LanguageVote()
    if clips is not None:
        vote.limit(clips)
    numbered = list(enumerate(votes))
    for index, (weight, cast) in reversed(numbered) if reverse else numbered:
        vote.cast(index, weight, cast)
    async with asyncio.timeout(1):
        return await vote.language()


def test_one_clip_in_another_language_is_outvoted() -> None:
    votes = [(10, result(en=0.9, de=0.1)), (10, result(de=0.8, en=0.2)), (10, result(de=0.9, en=0.1))]
    assert asyncio.run(elect(*votes)) == "de"
    assert asyncio.run(elect(*votes, reverse=True)) == "de"


def test_a_vote_weighs_what_is_spoken() -> None:
    votes = [(1000, result(es=0.9, pt=0.1)), (10, result(pt=0.9, es=0.1)), (10, result(pt=0.9, es=0.1))]
    assert asyncio.run(elect(*votes)) == "es"


def test_short_recordings_have_fewer_voters() -> None:
    assert asyncio.run(elect((5, result(de=0.9)), clips=1)) == "de"


def test_an_english_model_has_no_probabilities_to_tell() -> None:
    assert asyncio.run(elect((5, ClipResult("en", (), ())), clips=1)) == "en"


def test_the_outcome_tells_how_likely_it_is() -> None:
    async def outcome() -> tuple[str, float]:
        vote = LanguageVote()
        vote.cast(0, 300, result(en=0.9, de=0.1))
        vote.cast(1, 100, result(en=0.5, de=0.5))
        vote.limit(2)
        return await vote.outcome()

    language, probability = asyncio.run(outcome())
    assert language == "en"
    assert round(probability, 6) == 0.8
