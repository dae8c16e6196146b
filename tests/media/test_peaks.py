"""How peaks are collected, stored and divided into points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.media.peaks import FULL_SCALE, PeakCollector, Peaks
from tests.media_files import Pcm
from tests.sample_peaks import collected, pairs
from workers.media.peaks import PeakFinder
from workers.messages import PEAK_SAMPLES

recordings = st.builds(
    lambda samples, amplitude: np.random.default_rng(samples).integers(
        -amplitude, amplitude, samples, endpoint=True
    ),
    st.integers(1, 20_000),
    st.integers(0, 32_767),
).map(lambda pcm: pcm.astype(np.int16))


def levels(peaks: Peaks) -> list[tuple[float, float]]:
    """The lowest and highest level of each point, -1 to 1."""
    values = zip(peaks.lowest.tolist(), peaks.highest.tolist(), strict=True)
    return [(peaks.level(low), peaks.level(high)) for low, high in values]


@given(recordings, st.lists(st.integers(50, 5000), min_size=1, max_size=8), st.data())
def test_steps_and_crashes_do_not_change_them(pcm: Pcm, sizes: list[int], data: st.DataObject) -> None:
    collector = PeakCollector()
    for _ in range(data.draw(st.integers(0, 3), "crashes")):
        decode(pcm, sizes, collector, stop_after=data.draw(st.integers(0, 8)))
    decode(pcm, sizes, collector)
    assert collector.pack() == collected(pcm).pack()


def decode(pcm: Pcm, sizes: list[int], collector: PeakCollector, stop_after: int = 10**6) -> None:
    """Decode a recording in steps, or the first `stop_after` of them, as a new worker does."""
    finder, at, step = PeakFinder(), 0, 0
    while at < len(pcm) and step < stop_after:
        size = sizes[step % len(sizes)]
        finder.feed(pcm[at : at + size].tobytes())
        at, step = min(at + size, len(pcm)), step + 1
        finished = at == len(pcm)
        collector.add(at, finder.take(finished=finished), finished=finished)


@given(recordings)
def test_storing_keeps_the_extremes_and_rounds_the_others(pcm: Pcm) -> None:
    peaks = Peaks.unpack(collected(pcm).pack())
    loudest = max(abs(int(value)) for value in pcm)
    assert (peaks.samples, peaks.loudest) == (len(pcm), loudest)
    for (low, high), (lowest, highest) in zip(levels(peaks), pairs(pcm), strict=True):
        for level, sample in ((low, lowest), (high, highest)):
            assert abs(level * FULL_SCALE - sample) <= loudest / 254 + 1e-3
            if abs(sample) == loudest:
                assert level * FULL_SCALE == pytest.approx(sample)


@pytest.mark.parametrize(("low", "high"), [(-32_768, 32_767), (-2, 1), (0, 0), (5, 5), (-7, -7)])
def test_extreme_recordings(low: int, high: int) -> None:
    pcm = np.array([low, high] * 1000, np.int16)
    peaks = Peaks.unpack(collected(pcm).pack())
    expected = (pytest.approx(low / 32_768, abs=1e-4), pytest.approx(high / 32_768, abs=1e-4))
    assert set(levels(peaks)) == {levels(peaks)[0]}
    assert levels(peaks)[0] == expected
    assert -1 <= levels(peaks)[0][0] <= levels(peaks)[0][1] <= 1


@given(st.integers(1, 20_000), st.integers(1, 200))
def test_every_bin_is_in_a_point_of_its_time(samples: int, points: int) -> None:
    bins = -(-samples // PEAK_SAMPLES)
    values = np.arange(bins).astype(np.int8)  # each bin has its number as its value
    shares = Peaks(samples, 1, values, values).resample(points)
    assert len(shares.lowest) == len(shares.highest) == points
    starts = [point * samples // (points * PEAK_SAMPLES) for point in range(points)]
    ends = [max(start + 1, end) for start, end in zip(starts, [*starts[1:], bins], strict=True)]
    assert sorted({bin for start, end in zip(starts, ends, strict=True) for bin in range(start, end)}) == [
        *range(bins)
    ]
    for point, (start, end) in enumerate(zip(starts, ends, strict=True)):
        assert shares.lowest[point] == values[start:end].min()
        assert shares.highest[point] == values[start:end].max()
        # A share begins in its first bin.
        assert start <= point * samples / points / PEAK_SAMPLES < start + 1


@given(recordings, st.integers(1, 500))
def test_a_share_is_as_loud_as_its_bins(pcm: Pcm, points: int) -> None:
    peaks = Peaks.unpack(collected(pcm).pack())
    shares = peaks.resample(points)
    loudness = peaks.loudness(points)
    highest = np.maximum(-shares.lowest.astype(int), shares.highest)
    assert ((loudness >= 0) & (loudness <= highest)).all()


def test_pauses_make_a_share_less_loud() -> None:
    talk = np.full(10 * PEAK_SAMPLES, 1000, np.int16)
    paused = np.where(np.arange(len(talk)) < 4 * PEAK_SAMPLES, talk, 0).astype(np.int16)
    peaks = Peaks.unpack(collected(np.concatenate([talk, paused, paused, paused])).pack())
    assert peaks.loudness(4).tolist() == [127, *[round(127 * 0.4**0.5)] * 3]
