"""The segments of long recordings in little memory. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from app.files import pack, unpack
from workers.messages import Segment


class PackedSegments(Sequence[Segment]):
    """A sequence of segments, packed part by part. A part is unpacked each time it is read."""

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._parts: list[bytes] = []
        self._ends: list[int] = []  # of each part: number of segments up to its end
        self.extend(segments)

    def extend(self, segments: Iterable[Segment]) -> None:
        """Append segments as one part."""
        part = tuple(segments)
        if part:
            self._parts.append(pack(part))
            self._ends.append(len(self) + len(part))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[Segment]:
        for part in self._parts:
            yield from unpack(part)

    @overload
    def __getitem__(self, index: int) -> Segment: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Segment]: ...
    def __getitem__(self, index: int | slice) -> Segment | Sequence[Segment]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(len(self))))
        at = range(len(self))[index]
        number = bisect_right(self._ends, at)
        segment: Segment = unpack(self._parts[number])[at - self._ends[number]]
        return segment

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]
