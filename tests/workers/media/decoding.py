"""Decodes recordings in the process of the tests, step by step, as a media worker does."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.media_files import RATE, Pcm
from workers.media import tasks
from workers.media.tasks import DecodeRequest
from workers.messages import Decoded

STEP = 60 * RATE

_sessions = (f"session-{number}" for number in itertools.count())


def request(source: Path, *pcm_paths: Path, **more: Any) -> DecodeRequest:
    return DecodeRequest(str(source), tuple(map(str, pcm_paths)), **more)


def steps_of(source: Path, pcm_paths: Sequence[Path], max_samples: int = STEP, **more: Any) -> list[Decoded]:
    """All steps of decoding a recording into new files. `more` is that of a `DecodeRequest`."""
    for path in pcm_paths:
        path.write_bytes(b"")
    session, steps = next(_sessions), list[Decoded]()
    while not steps or not steps[-1].finished:
        steps.append(tasks.decode(session, request(source, *pcm_paths, **more), max_samples))
    return steps


def decode(folder: Path, source: bytes | Path, max_samples: int = STEP, **more: Any) -> tuple[Decoded, Pcm]:
    """The last step of decoding a recording, and its sound."""
    if isinstance(source, bytes):
        (folder / "upload").write_bytes(source)
        source = folder / "upload"
    [*_, last] = steps_of(source, [folder / "pcm"], max_samples, **more)
    return last, read(folder / "pcm")


def read(pcm_path: Path) -> Pcm:
    return np.fromfile(pcm_path, "<i2")
