import asyncio

from hypothesis import given
from hypothesis import strategies as st

from app.transcription.language_vote import VOTERS, LanguageVote
from workers.messages import MAX_CLIP_SAMPLES, ClipResult


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


SURE = result(en=0.95, de=0.05)


def test_nobody_waits_for_a_vote_that_cannot_change_the_outcome() -> None:
    vote = LanguageVote()
    vote.cast(0, MAX_CLIP_SAMPLES, SURE)
    assert vote.elected is None  # two more clips might say otherwise
    vote.cast(2, MAX_CLIP_SAMPLES * 3 // 4, SURE)
    assert vote.elected == "en"


def test_how_much_a_clip_can_change_is_known_once_it_is_planned() -> None:
    vote = LanguageVote()
    for index in range(VOTERS):
        vote.announce(index, 1000)
    vote.cast(0, 1000, SURE)
    assert vote.elected is None
    vote.cast(1, 1000, SURE)
    assert vote.elected == "en"


def test_the_probability_takes_all_votes() -> None:
    async def outcome() -> tuple[str, float]:
        vote = LanguageVote()
        vote.cast(0, MAX_CLIP_SAMPLES, SURE)
        vote.cast(1, MAX_CLIP_SAMPLES, SURE)
        asked = asyncio.create_task(vote.outcome())
        await asyncio.sleep(0)
        assert not asked.done()
        vote.cast(2, MAX_CLIP_SAMPLES, result(de=0.95, en=0.05))
        return await asked

    language, probability = asyncio.run(outcome())
    assert language == "en"
    assert round(probability, 6) == 0.65


PROBABILITIES = st.floats(0, 1).map(lambda english: result(en=english, de=1 - english))


@given(st.permutations(range(VOTERS)), st.data())
def test_an_early_outcome_is_the_outcome(order: list[int], data: st.DataObject) -> None:
    vote = LanguageVote()
    early = None
    weights = data.draw(st.lists(st.integers(0, MAX_CLIP_SAMPLES), min_size=VOTERS, max_size=VOTERS))
    for index in data.draw(st.sets(st.integers(0, VOTERS - 1))):
        vote.announce(index, weights[index])
    for index in order:
        vote.cast(index, weights[index], data.draw(PROBABILITIES))
        early = early or vote.elected
    assert early == vote.elected == asyncio.run(vote.outcome())[0]
