"""The voices in a recording: embeddings of short windows of its speech, and these as bytes. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import numpy.typing as npt

from workers.messages import SAMPLE_RATE, Span

Embeddings = npt.NDArray[np.float32]  # shape (n, values), each row of length 1

WINDOW = 3 * SAMPLE_RATE // 2  # samples: a voice is hard to tell from less than a second
STEP = WINDOW // 2  # samples, at most
SHORTEST = SAMPLE_RATE // 5  # samples: less says nothing of a voice
# Distance of two windows of one voice near each other, with the bundled model: usual, and the most.
NEAR = 0.165
_FARTHEST_NEAR = 0.3
_PRIOR_COUNT = 10  # as if so many more windows had been seen, that far apart


def voice_windows(speech: Iterable[Span]) -> tuple[Span, ...]:
    """The windows of a clip's speech, in order, in samples of the recording.

    Each span of speech has windows of 1.5 s, evenly spread, that begin 0.75 s apart at most. A shorter span
    is one window, and a span below 0.2 s has none.
    """
    return tuple(window for start, end in speech for window in _windows(start, end))


def _windows(start: int, end: int) -> Iterator[Span]:
    spare = end - start - WINDOW
    if spare <= 0:
        if end - start >= SHORTEST:
            yield start, end
        return
    steps = -(-spare // STEP)
    for step in range(steps + 1):
        first = start + step * spare // steps
        yield first, first + WINDOW


def window_parts(windows: Sequence[Span]) -> npt.NDArray[np.int64]:
    """The part of the speech that each window stands for: shape (n, 2), ordered, without overlap.

    Where two windows overlap, the parts meet in the middle. Together, they cover what the windows cover.
    """
    parts = np.array(windows, np.int64).reshape(-1, 2)
    starts, ends = parts[1:, 0].copy(), parts[:-1, 1].copy()
    overlap = starts < ends
    parts[1:, 0][overlap] = parts[:-1, 1][overlap] = ((starts + ends) // 2)[overlap]
    return parts


def lengths(parts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The length of each part, in samples."""
    return (parts[:, 1] - parts[:, 0]).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Voices:
    """Windows of speech, in order, and the embedding of each."""

    windows: tuple[Span, ...]  # samples of the recording
    embeddings: Embeddings = field(repr=False)


def pack_voices(voices: Voices) -> bytes:
    """The voices as bytes: the embeddings as 16-bit floats, which are as exact as needed to compare them."""
    windows = np.array(voices.windows, "<i8").reshape(-1, 2)
    header = np.array([len(windows), voices.embeddings.shape[1]], "<i4")
    return header.tobytes() + windows.tobytes() + voices.embeddings.astype("<f2").tobytes()


def unpack_voices(content: bytes) -> Voices:
    """The reverse of `pack_voices`; each embedding has length 1 again."""
    count, values = np.frombuffer(content, "<i4", 2).tolist()
    windows = np.frombuffer(content, "<i8", 2 * count, 8).reshape(-1, 2)
    embeddings = np.frombuffer(content, "<f2", count * values, 8 + 16 * count).astype(np.float32)
    embeddings = embeddings.reshape(count, values)
    lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
    return Voices(tuple(map(tuple, windows.tolist())), embeddings / np.maximum(lengths, 1e-9))


def unpack_all(contents: Iterable[bytes]) -> Voices:
    """The voices of all clips as one."""
    clips = [clip for clip in map(unpack_voices, contents) if clip.windows]
    if not clips:
        return Voices((), np.zeros((0, 0), np.float32))
    windows = tuple(chain.from_iterable(clip.windows for clip in clips))
    return Voices(windows, np.concatenate([clip.embeddings for clip in clips]))


@dataclass(frozen=True, slots=True, eq=False)
class NearWindows:
    """Windows next but one to each other: they share no sound, but nearly always the voice."""

    first: npt.NDArray[np.int64]  # numbers of windows; each is compared with the next but one
    distances: npt.NDArray[np.float64]


def near_windows(voices: Voices) -> NearWindows:
    """The windows that are followed by two others in their span of speech."""
    spans = np.array(voices.windows, np.int64)
    first = np.flatnonzero((spans[1:-1, 0] < spans[:-2, 1]) & (spans[2:, 0] < spans[1:-1, 1]))
    cosines = np.einsum("ij,ij->i", voices.embeddings[first], voices.embeddings[first + 2])
    return NearWindows(first, 1 - cosines.astype(np.float64))


def distance_scale(near: NearWindows) -> float:
    """What the limits of distances are multiplied by: 1 for the model that is bundled, more for others.

    Most models put the windows of one voice further apart.
    """
    distance = float(np.median(near.distances)) if len(near.distances) else 0.0
    return distance / NEAR if distance > _FARTHEST_NEAR else 1.0


def usual_distance(near: NearWindows) -> float:
    """How far near windows of one voice are apart in this recording. Of few, the model's usual distance."""
    count = len(near.distances)
    distance = float(np.median(near.distances)) if count else 0.0
    return (count * distance + _PRIOR_COUNT * distance_scale(near) * NEAR) / (count + _PRIOR_COUNT)
