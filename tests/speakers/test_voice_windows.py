"""The windows of speech whose voices are compared."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.transcript.speakers.voices import (
    SHORTEST,
    STEP,
    WINDOW,
    Voices,
    pack_voices,
    unpack_all,
    voice_windows,
    window_parts,
)
from workers.messages import Span


@st.composite
def speech_spans(draw: st.DrawFn) -> list[Span]:
    """Spans of speech, in order, without overlap; some touch."""
    at, spans = 0, []
    for pause, length in draw(
        st.lists(st.tuples(st.integers(0, 30_000), st.integers(1, 200_000)), max_size=8)
    ):
        spans.append((at + pause, at + pause + length))
        at += pause + length
    return spans


@given(speech_spans())
def test_windows_cover_the_speech_in_order_and_nothing_else(speech: list[Span]) -> None:
    windows = voice_windows(speech)
    for start, end in speech:
        inside = [window for window in windows if start <= window[0] and window[1] <= end]
        if end - start < SHORTEST:
            assert not inside
            continue
        assert (inside[0][0], inside[-1][1]) == (start, end)
        assert {window_end - window_start for window_start, window_end in inside} == {
            min(WINDOW, end - start)
        }
        assert all(0 < later[0] - earlier[0] <= STEP for earlier, later in pairwise(inside))
        windows = windows[len(inside) :]
    assert not windows


@given(speech_spans())
def test_parts_divide_what_the_windows_cover(speech: list[Span]) -> None:
    windows = voice_windows(speech)
    parts = window_parts(windows)
    assert all(start < end for start, end in parts.tolist())
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(parts.tolist()))
    assert sum(end - start for start, end in parts.tolist()) == sum(
        end - start for start, end in speech if end - start >= SHORTEST
    )


def test_packed_voices_of_all_clips_are_one() -> None:
    source = np.random.default_rng(0)
    vectors = source.random((3, 8), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    clips = [
        Voices(((0, 24_000), (9_000, 33_000)), vectors[:2]),
        Voices((), vectors[:0]),
        Voices(((50_000, 60_000),), vectors[2:]),
    ]
    joined = unpack_all(map(pack_voices, clips))
    assert joined.windows == ((0, 24_000), (9_000, 33_000), (50_000, 60_000))
    np.testing.assert_allclose(joined.embeddings, vectors, atol=1e-3)
    assert unpack_all([]).windows == ()
