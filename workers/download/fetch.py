"""The functions that a download worker runs: prepare, probe, download. Each URL gets its own process.

The parent names these functions, so this module loads yt-dlp in functions only.
"""

import resource
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from workers import runtime
from workers.addresses import Connect, Resolver
from workers.download import sandbox
from workers.messages import FoundRecording

if TYPE_CHECKING:
    from workers.download.sites import Visit

RECORDING = "recording"  # file name; during the download, names of partial files may begin with it, too

_HEADROOM_BYTES = 1 << 30  # address space for pages, manifests and parts of recordings
# Above `max_bytes`: our own check must fail first, because its error says what the limit is.
_FILE_SLACK_BYTES = 16 << 20

_visits: list["Visit"] = []


def prepare(
    folder: str,
    max_bytes: int,
    max_duration_s: float | None,
    resolver: Resolver = socket.getaddrinfo,
    connect: Connect = socket.create_connection,
) -> None:
    """Sandbox this process, and limit its memory and the size of its files. Call it first, and once.

    Raises ModuleNotFoundError if yt-dlp is not installed.
    """
    sandbox.install(Path(folder))
    from workers.download.sites import Visit

    _visits.append(Visit(Path(folder) / RECORDING, max_bytes, max_duration_s, resolver, connect))
    runtime.limit_memory(_HEADROOM_BYTES)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes + _FILE_SLACK_BYTES, hard))


def probe(url: str) -> FoundRecording:
    """Find the one recording behind a URL, without downloading it.

    Raises RecordingRefused with the codes url_refused, url_unavailable, url_is_playlist, url_is_live,
    audio_too_long or file_too_large.
    """
    return _visits[0].probe(url)


def download() -> None:
    """Download what `probe` has found into the file `RECORDING`.

    Raises RecordingRefused as `probe` does, and OSError if the disk is full.
    """
    _visits[0].download()
