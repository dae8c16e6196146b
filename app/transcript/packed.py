"""Clip results and segments as compressed bytes, which take a twentieth of the memory of their objects."""

import math
import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Self, overload

from pydantic import TypeAdapter

from app.transcript.timeline import ClipResult, Transcript
from workers.messages import Segment

LEVEL = 3  # text and numbers: higher levels save little

_RESULT = TypeAdapter(ClipResult)


class PackedResult(NamedTuple):
    """The result of a clip, and the same from `pack_result`."""

    result: ClipResult
    content: bytes

    @classmethod
    def unpack(cls, content: bytes) -> Self:
        """A packed result, with what it says."""
        return cls(unpack_result(content), content)


def pack_result(result: ClipResult) -> bytes:
    """A clip's result as compressed JSON, which jobs store too.

    Raises ValueError for a score that is not finite.
    """
    check_finite(result, (probability for _, probability in result.language_probs))
    for segment in result.segments:
        check_scores(segment)
    return zlib.compress(_RESULT.dump_json(result), LEVEL)


def unpack_result(content: bytes) -> ClipResult:
    """The reverse of `pack_result`."""
    return _RESULT.validate_json(zlib.decompress(content))


def unpacked(transcript: Transcript) -> Transcript:
    """The transcript with its segments in memory: unpacking and placing them takes long, and is done once."""
    # Of an iterator: a tuple of the sequence itself asks for its length first, which unpacks all.
    return replace(transcript, segments=tuple(iter(transcript.segments)))


def check_scores(segment: Segment) -> None:
    """Raise ValueError for a score that is not finite."""
    scores = (segment.temperature, segment.avg_logprob, segment.compression_ratio, segment.no_speech_prob)
    check_finite(segment, (*scores, *(word.probability for word in segment.words)))


def check_finite(value: object, scores: Iterable[float]) -> None:
    """Raise ValueError for a score that is not finite. pydantic's JSON would have null for it."""
    if not all(map(math.isfinite, scores)):
        raise ValueError(f"a score is not finite, which JSON lacks: {value}")


class PackedSegments(Sequence[Segment]):
    """A sequence of segments, packed part by part. All parts are unpacked each time it is read.

    It is for this process and its children: pickled data can run code.
    """

    def __init__(self) -> None:
        # Each with what places the segments of a clip's result; None: it is the segments themselves.
        self._parts: list[tuple[bytes, Callable[[ClipResult], Iterable[Segment]] | None]] = []

    def extend(self, segments: Iterable[Segment]) -> None:
        """Append segments as one part."""
        pickled = pickle.dumps(tuple(segments), pickle.HIGHEST_PROTOCOL)
        self._parts.append((zlib.compress(pickled, LEVEL), None))

    def add(self, content: bytes, segments_of: Callable[[ClipResult], Iterable[Segment]]) -> None:
        """Append the packed result of a clip; `segments_of` places its segments. It must be picklable."""
        self._parts.append((content, segments_of))

    def __iter__(self) -> Iterator[Segment]:
        for content, segments_of in self._parts:
            if segments_of is None:
                yield from pickle.loads(zlib.decompress(content))
            else:
                yield from segments_of(unpack_result(content))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, index: int) -> Segment: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Segment]: ...
    def __getitem__(self, index: int | slice) -> Segment | Sequence[Segment]:
        return tuple(iter(self))[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]
