"""From frames of any kind to 16 kHz mono."""

from typing import Any

from workers.messages import BYTES_PER_SAMPLE, SAMPLE_RATE

FRAMES_PER_PULL = 16  # asking for the output costs about as much as giving a frame


class Mixer:
    """Mixes the channels of like frames down, each with the same weight, and resamples them to 16 kHz.

    FFmpeg's own down-mix would drop the bass channel, favour the middle and, with floats, clip.
    """

    def __init__(self, first: Any, skip: int = 0) -> None:
        """For frames of the kind of `first`, leaving the first `skip` samples of the result out."""
        from av.filter import Graph

        self._kind = _kind(first)
        self._skip_bytes = skip * BYTES_PER_SAMPLE
        self._waiting = 0  # frames given since the last pull
        self._graph: Any = Graph()
        count = first.layout.nb_channels
        weights = "+".join(f"{1 / count:.9f}*c{channel}" for channel in range(count))
        self._graph.link_nodes(
            self._graph.add(
                "abuffer",
                sample_rate=str(first.sample_rate),
                sample_fmt=first.format.name,
                channel_layout=first.layout.name,
                time_base=f"1/{first.sample_rate}",
            ),
            # As integers, rounded weights may add up to more than 1 and overflow.
            self._graph.add("aformat", sample_fmts="fltp"),
            self._graph.add("pan", f"mono|c0={weights}"),
            self._graph.add(
                "aformat", sample_rates=str(SAMPLE_RATE), sample_fmts="s16", channel_layouts="mono"
            ),
            self._graph.add("abuffersink"),
        ).configure()

    def takes(self, frame: Any) -> bool:
        """Whether a frame is of the kind that this mixer was made for."""
        return _kind(frame) == self._kind

    def mix(self, frame: Any) -> bytes:
        """Give a frame; returns what is ready: often nothing, at times that of several frames."""
        frame.pts = None  # its place is settled already
        self._graph.push(frame)
        self._waiting += 1
        return self._pull() if self._waiting == FRAMES_PER_PULL else b""

    def finish(self) -> bytes:
        """What is left, with the resampler's tail."""
        self._graph.push(None)
        return self._pull()

    def _pull(self) -> bytes:
        import av

        self._waiting = 0
        pieces = []
        while True:
            try:
                mixed = self._graph.pull()
            except (av.BlockingIOError, av.EOFError):  # no more for now, or at all
                break
            pieces.append(bytes(mixed.planes[0])[: mixed.samples * BYTES_PER_SAMPLE])
        pcm = b"".join(pieces)
        skipped, self._skip_bytes = self._skip_bytes, max(0, self._skip_bytes - len(pcm))
        return pcm[skipped:]


def _kind(frame: Any) -> tuple[int, str, str]:
    return (frame.sample_rate, frame.format.name, frame.layout.name)
