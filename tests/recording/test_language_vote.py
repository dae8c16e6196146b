"""The vote of a recording's first clips on its language."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.recording.language_vote import VOTERS, LanguageVote
from app.transcript.timeline import ClipResult
from workers.messages import MAX_CLIP_SAMPLES

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


def result(**probs: float) -> ClipResult:
    ranked = tuple(sorted(probs.items(), key=lambda pair: -pair[1]))
    return ClipResult(ranked[0][0], ranked, ())


async def elect(
    *votes: tuple[int, ClipResult], clips: int | None = None, reverse: bool = False
) -> str | None:
    vote = LanguageVote()
    if clips is not None:
        vote.limit(clips)
    numbered = list(enumerate(votes))
    for index, (weight, cast) in reversed(numbered) if reverse else numbered:
        vote.cast(index, weight, cast)
    async with asyncio.timeout(1):
        return await vote.language()


async def test_one_clip_in_another_language_is_outvoted() -> None:
    votes = [(10, result(en=0.9, de=0.1)), (10, result(de=0.8, en=0.2)), (10, result(de=0.9, en=0.1))]
    assert await elect(*votes) == "de"
    assert await elect(*votes, reverse=True) == "de"


async def test_a_vote_weighs_as_much_as_its_clip_has_speech() -> None:
    votes = [(1000, result(es=0.9, pt=0.1)), (10, result(pt=0.9, es=0.1)), (10, result(pt=0.9, es=0.1))]
    assert await elect(*votes) == "es"


async def test_short_recordings_have_fewer_voters() -> None:
    assert await elect((5, result(de=0.9)), clips=1) == "de"


async def test_an_english_only_model_gives_no_probabilities() -> None:
    assert await elect((5, ClipResult("en", (), ())), clips=1) == "en"


async def test_the_outcome_has_the_probability_of_the_language() -> None:
    vote = LanguageVote()
    vote.cast(0, 300, result(en=0.9, de=0.1))
    vote.cast(1, 100, result(en=0.5, de=0.5))
    vote.limit(2)
    language, probability = await vote.outcome()
    assert language == "en"
    assert round(probability, 6) == 0.8


SURE = result(en=0.95, de=0.05)


def test_a_language_is_elected_once_the_missing_votes_cannot_change_it() -> None:
    vote = LanguageVote()
    vote.cast(0, MAX_CLIP_SAMPLES, SURE)
    assert vote.elected is None  # two more clips might change it
    vote.cast(2, MAX_CLIP_SAMPLES * 3 // 4, SURE)
    assert vote.elected == "en"


def test_the_weight_of_a_missing_vote_is_known_once_its_clip_is_planned() -> None:
    vote = LanguageVote()
    for index in range(VOTERS):
        vote.announce(index, 1000)
    vote.cast(0, 1000, SURE)
    assert vote.elected is None
    vote.cast(1, 1000, SURE)
    assert vote.elected == "en"


async def test_the_outcome_waits_for_all_votes() -> None:
    vote = LanguageVote()
    vote.cast(0, MAX_CLIP_SAMPLES, SURE)
    vote.cast(1, MAX_CLIP_SAMPLES, SURE)
    outcome = asyncio.create_task(vote.outcome())
    await asyncio.sleep(0)
    assert not outcome.done()
    vote.cast(2, MAX_CLIP_SAMPLES, result(de=0.95, en=0.05))
    language, probability = await outcome
    assert language == "en"
    assert round(probability, 6) == 0.65


async def test_nobody_waits_for_the_vote_of_a_clip_that_failed() -> None:
    vote = LanguageVote()
    vote.abstain(0)
    vote.cast(1, 10, result(de=0.9, en=0.1))
    assert vote.elected is None
    vote.abstain(2)
    async with asyncio.timeout(1):
        assert await vote.language() == "de"
        assert await vote.outcome() == ("de", 0.9)


async def test_a_clip_that_fails_after_its_vote_keeps_it() -> None:
    """An outvoted clip is transcribed again, in the elected language, which may fail."""
    votes = [(8, result(en=0.6, de=0.4)), (10, result(de=0.55, en=0.45)), (10, result(de=0.55, en=0.45))]
    vote = LanguageVote()
    for index, (weight, cast) in enumerate(votes):
        vote.cast(index, weight, cast)
    before = await vote.outcome()
    vote.abstain(0)
    assert (vote.elected, await vote.outcome()) == ("de", before)


async def test_without_any_vote_there_is_no_language() -> None:
    vote = LanguageVote()
    vote.abstain(5)  # no voter
    for index in range(VOTERS):
        assert not vote._decided.is_set()
        vote.abstain(index)
    async with asyncio.timeout(1):
        assert await vote.language() is None


PROBABILITIES = st.floats(0, 1).map(lambda english: result(en=english, de=1 - english))


@given(st.permutations(range(VOTERS)), st.data())
def test_an_early_election_is_final(order: list[int], data: st.DataObject) -> None:
    vote = LanguageVote()
    early = None
    weights = data.draw(st.lists(st.integers(0, MAX_CLIP_SAMPLES), min_size=VOTERS, max_size=VOTERS))
    for index in data.draw(st.sets(st.integers(0, VOTERS - 1))):
        vote.announce(index, weights[index])
    for index in order:
        vote.cast(index, weights[index], data.draw(PROBABILITIES))
        early = early or vote.elected
    assert early == vote.elected == asyncio.run(vote.outcome())[0]


async def test_all_channels_vote_on_one_language() -> None:
    vote = LanguageVote((0, 3))
    vote.limit(1, 3)
    vote.cast(0, 10, result(nn=0.9, en=0.1), 3)  # the only, short clip of a channel
    for index in range(VOTERS):
        vote.announce(index, 200, 0)
    for index in range(2):
        assert vote.elected is None
        vote.cast(index, 200, result(en=0.9, de=0.1), 0)
    async with asyncio.timeout(1):
        assert await vote.language() == "en"


async def test_a_channel_without_clips_holds_nobody_up() -> None:
    vote = LanguageVote((0, 1))
    vote.limit(0, 1)
    vote.limit(2, 0)
    vote.cast(0, 10, result(de=0.6, en=0.4))
    assert vote.elected is None
    vote.abstain(1)
    async with asyncio.timeout(1):
        assert await vote.language() == "de"
