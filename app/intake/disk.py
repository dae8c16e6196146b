"""The space on the disk of the data folder: who may still write how much.

A margin always stays free, for the database and for other programs. Writers that know the size of their file
reserve space for it. What the others have reserved is not available to a writer. A client may declare a file
that never comes, and jobs stay for a week. So one owner may hold only `_SHARE` times what is still free then,
and a part is left for others: a dynamic threshold, as of the queues in a switch that share its memory.
"""

import shutil
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.common.errors import DiskFull
from app.telemetry.sampler import Sampler
from workers.messages import NO_SPACE_ERRNOS

MARGIN_BYTES = 256 << 20
_MARGIN_DIVISOR = 20  # on a small disk, the margin is its size divided by this
_SHARE = 3  # one owner alone fills three quarters


@dataclass(slots=True, eq=False)
class Reservation:
    """The space for one file. Its methods may block: call them in threads."""

    _disk: "DiskSpace"
    owner: str | None = None  # whose file it is, if a client declares its size: see `app.intake.limits`
    _expected: int = 0  # bytes of the file, once complete; 0 if unknown
    written: int = 0  # bytes
    has_row: bool = False  # of a resumable upload: all front ends know it

    @property
    def outstanding(self) -> int:
        """The bytes that are reserved and not written."""
        return max(0, self._expected - self.written)

    @property
    def available(self) -> int:
        """The bytes that this file may still grow by: those above the margin that no other one needs."""
        others = sum(other.outstanding for other in self._disk.reservations - {self})
        return self._disk.free() - others - self._disk.elsewhere.total()

    def expect(self, size: int) -> None:
        """Reserve space for all of a file of `size` bytes.

        Raises DiskFull if there is too little, or its owner would hold more than its share.
        """
        with self._disk.lock:
            missing = size - self.written
            if missing > self.available:
                raise DiskFull(
                    "The service's disk is full: it has no space for all of this file. Try again later, or "
                    "send a smaller file."
                )
            if self.owner is not None:
                self._disk.check_share(self.owner, missing)
            self._expected = size

    def close(self) -> None:
        """Give the space up. It may have been given up already."""
        self._disk.reservations -= {self}

    def check(self, size: int) -> None:
        """Raise DiskFull if there is no space to write `size` bytes."""
        # Others' reservations only count against bytes that this file has not reserved.
        if size > (self._disk.free() if size <= self.outstanding else self.available):
            raise disk_full()
        if self.owner is not None and size > self.outstanding:
            self._disk.check_share(self.owner, size)


class DiskSpace:
    """The space on the disk of a folder."""

    def __init__(self, folder: Path) -> None:
        self.lock = threading.Lock()
        self._folder = folder
        self.reservations: frozenset[Reservation] = frozenset()  # replaced, never changed: threads read it
        # Bytes in the jobs of each owner: counted now and then, with recordings that come and go meanwhile.
        self.stored: Counter[str] = Counter()
        self.elsewhere: Counter[str] = Counter()  # `requested` at other front ends, at the last exchange
        self.most_stored = sys.maxsize  # bytes that an owner may hold at most
        self.has_others = False  # whether there may be more owners than one: only then, jobs count
        # For people. It does not wait for a disk that hangs, and None stands for one that says nothing.
        self.free_bytes = Sampler("the disk", "statvfs", lambda: _free_bytes(folder))

    def reserve(
        self, owner: str | None = None, size: int = 0, written: int = 0, *, has_row: bool = False
    ) -> Reservation:
        """A reservation for the rest of a file of `size` bytes, however little there is, until it is closed.

        `owner`, `has_row`: see `Reservation`. Without a size, of nothing yet.
        """
        reservation = Reservation(self, owner, size, written, has_row)
        self.reservations |= {reservation}
        return reservation

    def check_share(self, owner: str, size: int = 0) -> None:
        """Raise DiskFull if an owner would hold more than its share with further `size` bytes.

        The first upload of one that holds nothing may take all that is free.
        """
        uploads = [other for other in self.reservations if other.owner == owner]
        missing = sum(upload.outstanding for upload in uploads) + self.elsewhere[owner]
        held = self.stored[owner] + missing + sum(upload.written for upload in uploads)
        counted = held if self.has_others else missing
        reserved = sum(other.outstanding for other in self.reservations) + self.elsewhere.total()
        left = self.free() - reserved - size
        if held + size > self.most_stored or (counted and counted + size > _SHARE * left):
            raise DiskFull(
                f"Your jobs hold {self.stored[owner] / 1e6:,.0f} MB of the service's disk, and your uploads "
                f"{(held - self.stored[owner]) / 1e6:,.0f} MB. With this, it is more than the share of one "
                "client (three times what stays free, or WHISPER_OWNER_STORAGE_MB). Delete jobs for ever, "
                "also those in the trash, or uploads, then retry.",
                code="storage_share_full",
            )

    @property
    def requested(self) -> Counter[str]:
        """Bytes that requests have reserved and not written, by owner, without resumable uploads."""
        requested: Counter[str] = Counter()
        for each in self.reservations:
            requested[each.owner or ""] += 0 if each.has_row else each.outstanding
        return +requested

    def check_margin(self) -> None:
        """Raise DiskFull if the margin is in use. May block: call it in a thread."""
        if self.free() < 0:
            raise disk_full()

    def free(self) -> int:
        """The free bytes above the margin; negative if the margin is in use."""
        usage = shutil.disk_usage(self._folder)
        if not usage.total:
            return sys.maxsize  # some network file systems do not say
        return usage.free - min(MARGIN_BYTES, usage.total // _MARGIN_DIVISOR)


def _free_bytes(folder: Path) -> int | None:
    """The free bytes of a folder's disk; None if its file system does not say."""
    usage = shutil.disk_usage(folder)
    return usage.free if usage.total else None


@contextmanager
def disk_errors() -> Iterator[None]:
    """Raise DiskFull for an OSError that means that the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_SPACE_ERRNOS:
            raise disk_full() from error
        raise


def disk_full() -> DiskFull:
    """The error for a disk that is full, whoever filled it."""
    return DiskFull("The service's disk is full; try again later. Jobs in the trash count, too.")
