"""Which windows have one voice."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.transcript.speakers.alternation import joined_speakers, spread, transitions
from app.transcript.speakers.clustering import MOST_ITEMS, find_speakers
from app.transcript.speakers.labelling import SpeakerCount
from app.transcript.speakers.linkage import average_linkage, centroids, joined, sums_of
from app.transcript.speakers.voices import STEP, WINDOW, Voices, near_windows, usual_distance
from tests.speakers.conversation import Line, conversation, voice

NAMES = "ABCDEF"


def drawn(source: np.random.Generator, count: int, values: int = 16, power: int = 1) -> np.ndarray:
    vectors = source.random((count, values), np.float32) ** power
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def turns(speakers: str, words: int = 8) -> list[Line]:
    return [Line(speaker, words) for speaker in speakers]


def slow_average_linkage(vectors: np.ndarray, weights: np.ndarray, apart: set[frozenset[int]]) -> list[float]:
    """The distances of all merges, in order: by comparing all pairs of all clusters, each time."""
    clusters = [[item] for item in range(len(vectors))]
    distances = []
    while True:
        best = None
        for index, one in enumerate(clusters):
            for other in clusters[:index]:
                if any(frozenset((a, b)) in apart for a in one for b in other):
                    continue
                pairs = [(weights[a] * weights[b], 1 - vectors[a] @ vectors[b]) for a in one for b in other]
                distance = sum(w * d for w, d in pairs) / sum(w for w, _ in pairs)
                best = min(best or (9.0, one, other), (distance, one, other), key=lambda found: found[0])
        if best is None:
            return distances
        distance, one, other = best
        distances.append(distance)
        clusters = [cluster for cluster in clusters if cluster not in (one, other)] + [one + other]


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 12), st.booleans())
def test_average_linkage_is_that_of_its_definition(seed: int, count: int, constrained: bool) -> None:
    source = np.random.default_rng(seed)
    vectors, weights = drawn(source, count), source.uniform(1, 9, count)
    pairs = [tuple(source.choice(count, 2, replace=False).tolist())] if constrained and count > 1 else []
    owners = np.full(count, -1)
    for pair in pairs:
        owners[list(pair)] = pair
    merges = average_linkage(vectors * weights[:, None].astype(np.float32), weights, owners)
    expected = slow_average_linkage(vectors, weights, {frozenset(pair) for pair in pairs})
    assert [merge.distance for merge in merges] == pytest.approx(expected, abs=1e-4)
    labels = joined(count, merges)
    assert labels.max() == count - 1 - len(merges)
    assert all(labels[one] != labels[other] for one, other in pairs)


@pytest.mark.parametrize("speakers", ["A", "AB", "AAAB", "ABCABC", "ABCDEF"])
def test_the_voices_say_how_many_speak(speakers: str) -> None:
    made = conversation(turns(speakers * 6))
    assert len(set(find_speakers(made.voices, SpeakerCount()).tolist())) == len(set(speakers))


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (SpeakerCount(5, 5), 5),
        (SpeakerCount(1, 2), 2),
        (SpeakerCount(4), 4),
        (SpeakerCount(1, 9), 3),
        (SpeakerCount(1, 1), 1),
        (SpeakerCount(2000), None),
    ],
)
def test_a_number_that_is_given_is_kept(count: SpeakerCount, expected: int | None) -> None:
    made = conversation(turns("ABC" * 8))
    found = find_speakers(made.voices, count)
    assert len(set(found.tolist())) == (expected or len(made.voices.windows))


@pytest.mark.parametrize("words", [1, 2])
def test_short_recordings_have_a_speaker(words: int) -> None:
    made = conversation([Line("A", words)])
    assert find_speakers(made.voices, SpeakerCount()).tolist() == [0] * len(made.voices.windows)
    assert find_speakers(Voices((), np.zeros((0, 256), np.float32)), SpeakerCount()).tolist() == []


def test_a_cough_is_no_speaker_and_five_percent_are() -> None:
    lines = turns("AB" * 20)
    cough = conversation([*lines, Line("C", 4)])
    assert find_speakers(cough.voices, SpeakerCount()).max() == 1
    guest = conversation([*lines[:20], *turns("CC"), *lines[20:]])
    assert find_speakers(guest.voices, SpeakerCount()).max() == 2


def talk(voices: str, seed: int, guest: int = 0) -> tuple[Voices, np.ndarray]:
    """A quarter of an hour in 150 turns, and who speaks each window: -1 for 2 % of them.

    These are one or two where a turn begins, with a sound that is neither of one voice nor of the other.
    `guest`: windows of somebody else in the middle, all in a row.
    """
    source = np.random.default_rng(seed)
    vectors, speakers = [], []
    speaker = 0
    for turn in range(150):
        before, speaker = speaker, (speaker + int(source.integers(1, len(voices)))) % len(voices)
        if turn % 10 == 9:
            odd = int(source.integers(1, 3))
            vectors += [(voice(voices[before]) + voice(voices[speaker])) / 2 + voice("odd")] * odd
            speakers += [-1] * odd
        own = int(source.integers(3, 9))
        vectors += [voice(voices[speaker])] * own
        speakers += [speaker] * own
        if turn == 75:
            vectors += [voice("guest")] * guest
            speakers += [len(voices)] * guest
    made = np.stack(vectors) + np.float32(0.6) * drawn(source, len(vectors), 256, 4)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    windows = tuple((STEP * number, STEP * number + WINDOW) for number in range(len(made)))
    return Voices(windows, made), np.array(speakers)


@settings(max_examples=5, deadline=None)
@given(st.sampled_from(["AB", "ABC"]), st.integers(0, 100), st.booleans())
def test_odd_windows_here_and_there_are_no_speaker(voices: str, seed: int, is_given: bool) -> None:
    made, speakers = talk(voices, seed)
    count = SpeakerCount(len(voices), len(voices)) if is_given else SpeakerCount()
    found = find_speakers(made, count)
    pairs = set(zip(found.tolist(), speakers.tolist(), strict=True))
    assert len(set(found.tolist())) == len(voices)
    assert len({pair for pair in pairs if pair[1] >= 0}) == len(voices)


@pytest.mark.parametrize("seed", [1, 2])
def test_one_long_question_in_a_long_talk_is_a_speaker(seed: int) -> None:
    made, speakers = talk("AB", seed, guest=20)
    found = find_speakers(made, SpeakerCount())
    assert found.max() == 2
    assert len(set(found[speakers == 2].tolist())) == 1
    assert not set(found[speakers == 2].tolist()) & set(found[(speakers == 0) | (speakers == 1)].tolist())


def test_a_person_whom_somebody_named_stays_without_a_turn() -> None:
    made, speakers = talk("AB", 3)
    odd = np.flatnonzero(speakers < 0)
    first, second = int(np.flatnonzero(speakers == 0)[0]), int(np.flatnonzero(speakers == 1)[0])
    groups = [[[int(window)] for window in odd[:2]], [[first]], [[second]]]
    found = find_speakers(made, SpeakerCount(), groups, [(0, 1), (0, 2), (1, 2)])
    assert len({int(found[window]) for window in (odd[0], first, second)}) == 3
    assert found[odd[0]] == found[odd[1]]


def test_models_with_larger_distances_have_speakers_too() -> None:
    made = conversation(turns("ABC" * 8))
    source = np.random.default_rng(1)
    spread = made.voices.embeddings - made.voices.embeddings.mean(axis=1, keepdims=True)
    spread /= np.linalg.norm(spread, axis=1, keepdims=True)
    spread += 0.9 * drawn(source, len(spread), 256) - 0.9 / 16
    spread /= np.linalg.norm(spread, axis=1, keepdims=True)
    found = find_speakers(Voices(made.voices.windows, spread.astype(np.float32)), SpeakerCount())
    assert found.max() == 2


@settings(max_examples=15)
@given(st.text("ABCD", min_size=4, max_size=14), st.integers(0, 100), st.data())
def test_groups_of_windows_stay_together_and_apart(speakers: str, seed: int, data: st.DataObject) -> None:
    made = conversation(turns(speakers, 4), seed)
    windows = st.integers(0, len(made.voices.windows) - 1)
    chosen = data.draw(st.lists(windows, min_size=4, max_size=8, unique=True))
    groups = [[chosen[:1], chosen[1:2]], [chosen[2:3]], [chosen[3:]]]
    found = find_speakers(made.voices, SpeakerCount(1, 3), groups, [(0, 1), (0, 2), (1, 2)])
    labels = [{int(found[window]) for part in group for window in part} for group in groups]
    assert [len(of_group) for of_group in labels] == [1, 1, 1]
    assert len(set.union(*labels)) == 3
    assert len(set(found.tolist())) == 3
    assert (
        found.tolist()
        == find_speakers(made.voices, SpeakerCount(1, 3), groups, [(0, 1), (0, 2), (1, 2)]).tolist()
    )


def test_labels_are_numbered_by_first_appearance() -> None:
    made = conversation(turns("CABCAB" * 4))
    found = find_speakers(made.voices, SpeakerCount()).tolist()
    assert list(dict.fromkeys(found)) == [0, 1, 2]


def test_more_windows_than_items_become_fewer_without_mixing_voices() -> None:
    voices = np.stack([voice(name) for name in NAMES])
    source = np.random.default_rng(0)
    speakers = source.integers(0, len(NAMES), MOST_ITEMS + 500)
    vectors = voices[speakers] + np.float32(0.3) * drawn(source, len(speakers), 256)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    items = centroids(vectors, np.ones(len(vectors)), 100)
    assert items.max() == 99
    assert (
        len({(item, speaker) for item, speaker in zip(items.tolist(), speakers.tolist(), strict=True)}) == 100
    )


@pytest.mark.parametrize(
    ("apart", "noise", "count", "in_a_row", "expected"),
    [
        pytest.param(0.2, 0.05, 40, 40, 1, id="alike"),
        pytest.param(0.34, 0.05, 40, 40, 2, id="steady voices"),
        pytest.param(0.34, 0.05, 40, 1, 1, id="kinds of sound of one voice, in turns within a sentence"),
        pytest.param(0.34, 0.07, 40, 40, 1, id="voices that vary within a sentence, as people's do"),
        pytest.param(0.8, 0.07, 40, 40, 2, id="people whose voices differ"),
        pytest.param(0.45, 0.05, 40, 40, 2, id="steady voices that differ more"),
        pytest.param(0.45, 0.05, 6, 6, 1, id="too little speech to tell"),
        pytest.param(1.0, 0.07, 4, 4, 2, id="little speech that differs clearly"),
    ],
)
def test_clusters_are_one_speaker_unless_they_differ_more_than_one_voice_does(
    apart: float, noise: float, count: int, in_a_row: int, expected: int
) -> None:
    """Two clusters of `count` windows, so many of each in a row."""
    source = np.random.default_rng(0)
    kinds = np.eye(64, dtype=np.float32)[:1] + np.float32(apart) * np.eye(64, dtype=np.float32)[1:3]
    labels = np.arange(2 * count) // in_a_row % 2
    vectors = kinds[labels] + np.float32(noise) * source.standard_normal((2 * count, 64), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    windows = tuple((STEP * number, STEP * number + WINDOW) for number in range(2 * count))
    near = near_windows(Voices(windows, vectors))
    found = joined_speakers(
        sums_of(vectors * np.float32(STEP), labels),
        np.full(2, float(count * STEP)),
        np.full(2, float(count) * STEP**2),
        transitions(labels, windows),
        spread(labels, near),
        1,
        None,
        [],
        [],
        usual_distance(near),
        1,
    )
    assert len(set(found.tolist())) == expected


@pytest.mark.parametrize(("words", "expected"), [(3, 1), (8, 2)])
def test_a_second_of_another_voice_is_nobody_in_a_short_recording_either(words: int, expected: int) -> None:
    made = conversation([Line("A", 12), Line("B", words), Line("A", 12)])
    assert len(set(find_speakers(made.voices, SpeakerCount()).tolist())) == expected


def test_people_who_vary_are_found_although_no_two_of_their_windows_are_close() -> None:
    """Three of them, of whom each has sounds that are further apart than synthetic voices are."""
    source = np.random.default_rng(0)
    speakers = np.arange(180) // 6 % 3
    vectors = np.stack([voice(NAMES[speaker]) for speaker in speakers])
    vectors = vectors + drawn(source, len(vectors), 256, 4)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    windows = tuple((STEP * number, STEP * number + WINDOW) for number in range(len(vectors)))
    found = find_speakers(Voices(windows, vectors), SpeakerCount())
    assert len({*zip(found.tolist(), speakers.tolist(), strict=True)}) == len(set(found.tolist())) == 3
