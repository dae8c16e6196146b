"""One transcript from those of the channels of a recording."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.transcript.speakers.channels import join_channels, speaker_labels
from app.transcript.timeline import Transcript
from workers.messages import SAMPLE_RATE, Segment, Span, Word

SPANS = st.lists(st.integers(0, 600), min_size=2, max_size=12, unique=True).map(
    lambda edges: list(zip(sorted(edges)[::2], sorted(edges)[1::2], strict=False))
)


class Silence:
    def level(self, start: int, end: int) -> float:
        return 0.0


def transcript(spans: Sequence[Span], text: str, language: str = "en") -> Transcript:
    """A transcript with a clip, and a segment, in each span of seconds."""
    clips = tuple((start * SAMPLE_RATE, end * SAMPLE_RATE) for start, end in spans)
    segments = tuple(
        Segment(start, end, f" {text}", (), 0, 0, 1, 0, (Word(f" {text}", start, end, 1),))
        for start, end in clips
    )
    return Transcript("transcribe", "demo", language, 600 * SAMPLE_RATE, clips, segments, clips=clips)


def joined(*transcripts: Transcript, names: Sequence[str] = (), channels: Sequence[int] = ()) -> Transcript:
    numbers = channels or range(len(transcripts))
    return join_channels(transcripts, numbers, [Silence()] * len(transcripts), names)


def test_speakers_are_numbered_by_their_first_words() -> None:
    found = joined(transcript([(8, 9), (20, 25)], "b"), transcript([(1, 5), (22, 23)], "a"))
    speakers = [(segment.text, segment.speaker, segment.id) for segment in found.segments]
    assert speakers == [
        (" a", "S1", "16000-0-1"),
        (" b", "S2", "128000-0"),
        (" b", "S2", "320000-0"),
        (" a", "S1", "352000-0-1"),
    ]
    assert found.text == "a b b a"
    assert [(start // SAMPLE_RATE, end // SAMPLE_RATE) for start, end in found.speech] == [
        (1, 5),
        (8, 9),
        (20, 25),
    ]


def test_names_are_those_of_the_channels_of_the_file() -> None:
    parts = transcript([(8, 9)], "b"), transcript([(1, 5)], "a"), transcript([(3, 4)], "c")
    found = joined(*parts, names=("Bob", "Left out", "Ann"), channels=(0, 2, 5))
    assert [(segment.text, segment.speaker) for segment in found.segments] == [
        (" a", "Ann"), (" c", "S2"), (" b", "Bob")
    ]  # fmt: skip
    assert speaker_labels([1, 0], ["Bob"]) == {1: "S1", 0: "Bob"}


def test_a_silent_channel_gives_no_speaker_and_no_language() -> None:
    found = joined(transcript([], "", "en"), transcript([(1, 2), (4, 5)], "ja", "de"))
    assert (found.language, [segment.speaker for segment in found.segments]) == ("de", ["S1", "S1"])
    assert joined(transcript([], "", "en"), transcript([], "", "en")).segments == ()


@given(st.lists(SPANS, min_size=1, max_size=8))
def test_joined_channels_keep_all_in_order(spans: list[list[Span]]) -> None:
    found = joined(*(transcript(own, str(channel)) for channel, own in enumerate(spans)))
    expected = sorted((start * SAMPLE_RATE, channel) for channel, own in enumerate(spans) for start, _ in own)
    assert [(segment.start, int(segment.text)) for segment in found.segments] == expected
    assert len({segment.id for segment in found.segments}) == len(expected)
    assert len({segment.speaker for segment in found.segments}) == len([own for own in spans if own])
    if found.segments:
        assert found.segments[0].speaker == "S1"
    assert list(found.clips) == sorted(set(found.clips))
    covered = {second for own in spans for start, end in own for second in range(start, end)}
    speech = [(start // SAMPLE_RATE, end // SAMPLE_RATE) for start, end in found.speech]
    assert {second for start, end in speech for second in range(start, end)} == covered
    assert all(before[1] < after[0] for before, after in pairwise(speech))
