"""The pieces of a talk that the benchmark of the audio context decodes."""

from bench.audio_context import pieces, read_talk
from bench.recordings import TALK

CUES = [{"start": 1.0, "end": 3.0}, {"start": 3.5, "end": 5.0}, {"start": 6.0, "end": 8.0}]


def test_pieces_begin_with_a_sentence_and_end_in_a_pause() -> None:
    assert [round(end, 1) for _, end in pieces(CUES, 2.4)] == [3.2, 5.7, 8.2]
    assert pieces(CUES, 1.6) == []
    assert pieces(CUES, 4.5) == [(0.8, 5.3)]
    assert pieces(CUES, 8) == []


def test_the_talk_of_the_tests_has_pieces_of_all_lengths() -> None:
    cues = read_talk(TALK).cues
    assert all(len(pieces(cues, seconds)) >= 3 for seconds in (4, 10, 25))
