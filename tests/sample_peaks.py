"""Peaks of samples, computed directly."""

import numpy as np

from app.media.peaks import PeakCollector
from tests.media_files import Pcm
from workers.messages import PEAK_SAMPLES


def pairs(pcm: Pcm) -> list[tuple[int, int]]:
    """The lowest and the highest sample of each bin."""
    bins = [pcm[start : start + PEAK_SAMPLES] for start in range(0, len(pcm), PEAK_SAMPLES)]
    return [(int(one.min()), int(one.max())) for one in bins]


def collected(pcm: Pcm, collector: PeakCollector | None = None) -> PeakCollector:
    """The peaks of a recording that was decoded in one step."""
    collector = collector or PeakCollector()
    collector.add(len(pcm), np.array(pairs(pcm), "<i2").tobytes(), finished=True)
    return collector
