"""What a child does that downloads the recording behind a URL: look, then take. One child for each URL.

The parent names these functions, and so must not load what they import.
"""

import resource
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workers import runtime
from workers.addresses import Resolver
from workers.download import sandbox as guard

if TYPE_CHECKING:
    from workers.download.sites import Visit

RECORDING = "recording"  # what the file is called; while it grows, others may begin so, too

# Called like `socket.create_connection`, with an address that has been resolved already.
Connect = Callable[[tuple[str, int], float | None], socket.socket]

_HEADROOM_BYTES = 1 << 30  # address space for pages, manifests and pieces of recordings
_FILE_SLACK_BYTES = 16 << 20  # the limit on files is to be noticed by us first, who can say what it is


@dataclass(frozen=True, slots=True)
class Found:
    """The recording behind a URL, as far as its site tells. To be believed no more than the site is."""

    title: str
    extension: str  # without a dot; may be empty
    duration_s: float | None


_visits: list["Visit"] = []


def prepare(
    folder: str,
    max_bytes: int,
    max_duration_s: float | None,
    resolver: Resolver = socket.getaddrinfo,
    connect: Connect = socket.create_connection,
) -> None:
    """Bind this process to the public internet and to `folder`, and bound its memory and its files.

    To be called first, and once. Raises ModuleNotFoundError where yt-dlp is not installed.
    """
    guard.install(Path(folder))
    from workers.download.sites import Visit

    _visits.append(Visit(Path(folder), max_bytes, max_duration_s, resolver, connect))
    runtime.limit_memory(_HEADROOM_BYTES)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes + _FILE_SLACK_BYTES, hard))


def look(url: str) -> Found:
    """Find the one recording behind a URL, without downloading it.

    Raises RecordingRefused with the codes url_refused, url_unavailable, url_is_playlist, url_is_live,
    audio_too_long or file_too_large.
    """
    return _visits[0].look(url)


def take() -> None:
    """Download what `look` has found into the file `RECORDING`.

    Raises RecordingRefused as `look` does, and OSError where the disk is full.
    """
    _visits[0].take()
