"""The error for a full disk."""

from app.errors import DiskFull
from workers.disk import NO_SPACE_ERRNOS


def raise_if_full(error: OSError) -> None:
    """Raise DiskFull if `error` means that the disk is full."""
    if error.errno in NO_SPACE_ERRNOS:
        raise DiskFull("The service's disk is full; try again later.") from error
