"""What a recording holds besides its sound, read from its headers, and its sound alone.

Runs in a child process. The parent only names these functions, so PyAV is imported inside them.
"""

import errno
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workers import runtime
from workers.media.decode import OPEN_OPTIONS, decoded_pcm, file_length_s
from workers.media.findings import Findings
from workers.media.mixer import SPEECH
from workers.messages import Warnings

_HEADROOM_BYTES = 2 << 30  # address space that a file may take beyond the libraries


@dataclass(frozen=True, slots=True)
class Streams:
    """The length of a recording, and its subtitles."""

    seconds: float  # 0 if the headers do not give it, or only let it be guessed
    subtitles: tuple[str, ...]  # the language of each, as the file names it; blank if it does not


def prepare() -> None:
    """Load the libraries, and limit the memory of this process."""
    import av
    import soundfile  # noqa: F401

    av.logging.set_level(None)
    runtime.limit_memory(_HEADROOM_BYTES)


def read_streams(source: str) -> Streams:
    """Read the headers of a file. Subtitles of foreign parts only do not count.

    Raises OSError if it cannot be read, and ValueError if FFmpeg recognises no recording in it.
    """
    import av
    from av.stream import Disposition

    try:
        with (
            Path(source).open("rb") as file,
            av.open(file, container_options=OPEN_OPTIONS, metadata_errors="replace") as container,
        ):
            languages = [
                str(stream.metadata.get("language", ""))
                for stream in container.streams.subtitles
                if not stream.disposition & Disposition.forced
            ]
            return Streams(max(0.0, file_length_s(container) or 0.0), tuple(languages))
    except av.FFmpegError as error:  # some are OSErrors as well, with attributes that cannot be pickled
        raise ValueError(str(error)) from None


def extract_sound(source: str, target: str) -> Warnings:
    """Write the sound of a recording as FLAC, exactly as it is transcribed: mono, 16 kHz, same start.

    Returns what its sender should know of it. Raises `RecordingRefused` if there is none, and OSError if a
    file cannot be read or written.
    """
    from soundfile import SoundFile, SoundFileError

    findings = Findings()
    try:
        with SoundFile(target, "w", SPEECH.rate, SPEECH.channels, "PCM_16", format="FLAC") as output:
            for chunk in decoded_pcm(Path(source), findings):
                output.write(np.frombuffer(chunk, "<i2"))
    except SoundFileError as error:  # without the number of the system's error
        raise OSError(errno.ENOSPC, f"no space left, perhaps ({error})") from None
    return tuple(findings.warnings())
