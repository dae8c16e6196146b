"""The files of a recording's decoded audio: one for the mix of its channels, or one for each channel."""

from pathlib import Path

from workers.messages import MAX_SEPARATE_CHANNELS


def channel_path(pcm_path: Path, channel: int) -> Path:
    """The file of a channel. `pcm_path`: that of the mix, or of channel 0."""
    return pcm_path.with_name(f"{pcm_path.name}.{channel}") if channel else pcm_path


def channel_paths(pcm_path: Path) -> tuple[Path, ...]:
    """The files that a recording may have."""
    return tuple(channel_path(pcm_path, channel) for channel in range(MAX_SEPARATE_CHANNELS))


def remove_channels(pcm_path: Path) -> None:
    """Remove all decoded audio of a recording."""
    for path in channel_paths(pcm_path):
        path.unlink(missing_ok=True)
