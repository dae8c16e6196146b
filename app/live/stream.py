"""One live stream."""

from collections.abc import Callable

from app.live.events import Encoding, LiveEvent, StreamOptions


class LiveStream:
    """Finds the turns in the audio of one client, and has them transcribed while they are spoken.

    `id` is random. All methods are called in the event loop.
    """

    id: str

    on_event: Callable[[LiveEvent], None]  # called with each event, in order; must not wait

    def configure(self, options: StreamOptions) -> None:
        """Change the options, from the next item on."""

    async def append(self, audio: bytes, encoding: Encoding = Encoding.PCM_16K) -> None:
        """Add audio. Waits while too much of it is ahead of the detection of speech.

        Raises StreamRefused if more audio is open than a stream may have without a commit.
        """

    def commit(self) -> None:
        """End the open item. Raises StreamRefused (code `input_audio_buffer_commit_empty`) without 100 ms."""

    def clear(self) -> None:
        """Forget the audio that is not committed."""

    async def finish(self) -> None:
        """No more audio follows: commit what is open, if somebody speaks in it, and wait for all texts."""

    async def close(self) -> None:
        """End the stream. Its tasks are cancelled, its files removed. Safe to call twice."""
