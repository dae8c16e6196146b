"""Windows of the recordings in tests/data."""

from pathlib import Path
from typing import Any

from tests.media_files import read_pcm
from workers.messages import SAMPLE_RATE, DecodingOptions, Window

DATA = Path(__file__).parents[2] / "data"


def window(
    name: str, seconds: float = 15.0, start_s: float = 0.0, model: str = "demo", **decoding: Any
) -> Window:
    """A part of a recording, all of it speech. The encoder sees 15 s, unless `decoding` says otherwise."""
    start = round(start_s * SAMPLE_RATE)
    pcm = read_pcm(DATA / f"{name}.flac")[start : start + round(seconds * SAMPLE_RATE)]
    options = DecodingOptions(model, **{"context_s": 15, **decoding})
    return Window(pcm.astype("<i2").tobytes(), ((0, len(pcm)),), options)
