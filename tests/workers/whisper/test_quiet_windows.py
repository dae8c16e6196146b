"""Windows become as loud as others if they are quiet, and are left as they are if they are not."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workers.whisper.model import raised

quiet = st.lists(st.integers(-33, 33), min_size=1, max_size=50)


@given(st.lists(st.integers(-32768, 32767), max_size=50), st.integers(328, 32767))
def test_a_window_that_is_not_quiet_keeps_its_bytes(others: list[int], peak: int) -> None:
    pcm = np.array([peak, *others, -peak], "<i2").tobytes()
    assert raised(pcm) == pcm


@given(quiet, st.integers(-32000, 32000))
def test_a_quiet_window_has_the_same_form_whatever_its_level_and_offset(
    samples: list[int], offset: int
) -> None:
    centred = np.array([*samples, *(-sample for sample in samples), 33, -33])
    expected = centred * (5827 // 33)
    for factor, shift in ((1, 0), (1, offset), (5, offset)):
        found = np.frombuffer(raised((centred * factor + shift).astype("<i2").tobytes()), "<i2")
        assert np.abs(found - expected).max() <= 33 * 5


def test_a_window_without_samples() -> None:
    assert raised(b"") == b""
