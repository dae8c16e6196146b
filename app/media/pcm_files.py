"""The decoded audio of one recording: its files, the disk space that they may take, and its longest duration.

There is one file for the mix of the channels, or one for each channel.
"""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.common.errors import DiskFull, OutgrowsDisk, TooLarge
from app.intake.disk import DiskSpace, Reservation
from workers.messages import BYTES_PER_SAMPLE, MAX_SEPARATE_CHANNELS, SAMPLE_RATE


def channel_path(pcm_path: Path, channel: int) -> Path:
    """The file of a channel. `pcm_path`: that of the mix, or of channel 0."""
    return pcm_path.with_name(f"{pcm_path.name}.{channel}") if channel else pcm_path


def channel_paths(pcm_path: Path) -> tuple[Path, ...]:
    """The files that a recording may have."""
    return tuple(channel_path(pcm_path, channel) for channel in range(MAX_SEPARATE_CHANNELS))


def remove_channels(pcm_path: Path, but: Collection[int] = ()) -> None:
    """Remove the decoded audio of a recording, all of it or all `but` that of some channels."""
    for channel, path in enumerate(channel_paths(pcm_path)):
        if channel not in but:
            path.unlink(missing_ok=True)


@dataclass(slots=True)
class PcmBudget:
    """Checks each step of decoding a recording into the file at `pcm_path`, or a file for each channel.

    `reservation` is the one of these files. The files have a hole before the sample `start`. `channels`: how
    many files there are, or may be at most until `after_step` says so.
    """

    disk: DiskSpace
    reservation: Reservation
    pcm_path: Path
    max_duration_s: float
    start: int = 0
    channels: int = 1
    _needed: int = 0  # bytes of all decoded audio, as the recording declares it
    _step: int = 0  # bytes of the last step that was checked

    def before_step(self, samples: int) -> float:
        """The most samples that a recording may declare if its decoding begins now. Call it in a thread.

        Raises DiskFull if there is no space for another step of `samples`, or for the rest if that is less.
        """
        rest, self._step = self._needed - self.reservation.written, samples * self.channels * BYTES_PER_SAMPLE
        if 0 < rest < self._step:
            self._step = rest
        self.reservation.check(self._step)
        space = self.reservation.written + self.reservation.available
        return min(self.max_duration_s * SAMPLE_RATE, self.start + space / (self.channels * BYTES_PER_SAMPLE))

    async def after_step(self, samples: int, declared: int, channels: int = 1) -> None:
        """Record how many samples are decoded, and how many the recording declares; 0 if it does not say.

        `channels`: how many files there are; 0 if that is not known yet.

        Raises TooLarge if it declares too many, and DiskFull if there is no space for them.
        """
        if declared > self.max_duration_s * SAMPLE_RATE:
            raise audio_too_long(self.max_duration_s)
        self.channels = channels or self.channels
        # A media worker that takes over from a crashed one writes into the same file, from its beginning.
        self.reservation.written = max(self.reservation.written, self._kept_bytes(samples))
        is_new = not samples or not self._needed
        self._needed = self._kept_bytes(declared)
        if self._needed and is_new:
            await asyncio.to_thread(self.reservation.expect, self._needed)

    async def explain(self, error: DiskFull) -> DiskFull:
        """OutgrowsDisk if this recording is the reason why the disk is full, else `error`."""
        if not await asyncio.to_thread(self._outgrows_disk):
            return error
        return OutgrowsDisk(
            "The service's disk is full: the decoded audio of this recording, 115 MB an hour, needs more "
            "than there is. Send the recording in parts, or free some space.",
            param="file",
            code="audio_outgrows_disk",
        )

    def _kept_bytes(self, samples: int) -> int:
        """The size in bytes of what the files keep of the first `samples`."""
        return max(0, samples - self.start) * self.channels * BYTES_PER_SAMPLE

    def _outgrows_disk(self) -> bool:
        """Whether there is space without this recording's audio, but too little without all other audio."""
        own_paths = channel_paths(self.pcm_path)
        own = others = 0
        for path in self.pcm_path.parent.iterdir():
            with suppress(FileNotFoundError):
                size = path.stat().st_size
                if path in own_paths:
                    own += max(0, size - self.start * BYTES_PER_SAMPLE)
                else:
                    others += size
        free = self.disk.free()
        return free + own >= self._step and free + others < max(self._step, self._needed - own)


def audio_too_long(max_duration_s: float) -> TooLarge:
    """The error for a recording that is longer than the limit."""
    return TooLarge(
        f"The recording is longer than {max_duration_s:.0f} s, the most that is taken here. "
        "Send it in parts.",
        param="file",
        code="audio_too_long",
    )
