"""Mixes and resamples frames of any format: to 16 kHz for Whisper, mono or each channel by itself, and to
mono or stereo for people.
"""

from dataclasses import dataclass
from typing import Any

from workers.messages import BYTES_PER_SAMPLE, SAMPLE_RATE

FRAMES_PER_PULL = 16  # a pull of the output costs about as much as a push of a frame
MAX_WAITING_S = 10.0  # pushed before a pull: a frame may last a minute


@dataclass(frozen=True, slots=True)
class PcmFormat:
    """Samples of 16 bits, those of all channels side by side."""

    rate: int  # Hz
    channels: int
    separate: bool = False  # the channels are those of the source, each by itself

    @property
    def frame_bytes(self) -> int:
        """The bytes of one sample of each channel."""
        return self.channels * BYTES_PER_SAMPLE


SPEECH = PcmFormat(SAMPLE_RATE, 1)  # what Whisper and the speech detector get


class Mixer:
    """Mixes the channels of frames of one format with equal weight, and resamples them.

    Stereo frames keep their two channels if the result has two. If the result has separate channels, each
    channel is in one of them: in its own, or mixed into an earlier one if the result has fewer.

    FFmpeg's own down-mix drops the bass channel, weighs the centre channel more and, with floats, clips.
    """

    def __init__(self, first: Any, skip: int = 0, output: PcmFormat = SPEECH, cut: int = 0) -> None:
        """For frames of the format of `first`.

        Drops the first `cut` samples of the frames, and the first `skip` of the result.
        """
        from av.filter import Graph

        self._format = _format(first)
        self._frame_bytes = output.frame_bytes
        self._skip_bytes = skip * output.frame_bytes
        self._waiting = 0  # frames pushed since the last pull
        self._waiting_s = 0.0  # their duration
        self._graph: Any = Graph()
        layout, filters = _mixing(first.layout, output)
        self._graph.link_nodes(
            self._graph.add(
                "abuffer",
                sample_rate=str(first.sample_rate),
                sample_fmt=first.format.name,
                channel_layout=first.layout.name,
                time_base=f"1/{first.sample_rate}",
            ),
            self._graph.add("atrim", f"start_sample={cut}"),
            *(self._graph.add(name, setting) for name, setting in filters),
            # By default, FFmpeg would take half of what is at 7.6 kHz. A model trained with noise up to 8 kHz
            # takes noise without its top for other sounds.
            self._graph.add("aresample", f"{output.rate}:cutoff=1"),
            self._graph.add("aformat", sample_fmts="s16", channel_layouts=layout),
            self._graph.add("abuffersink"),
        ).configure()

    def accepts(self, frame: Any) -> bool:
        """Whether a frame has the format of this mixer."""
        return _format(frame) == self._format

    def mix(self, frame: Any) -> bytes:
        """Push a frame. Returns the output that is ready: often nothing, sometimes that of several frames."""
        frame.pts = None  # its place is known already
        self._graph.push(frame)
        self._waiting += 1
        self._waiting_s += frame.samples / frame.sample_rate
        is_due = self._waiting == FRAMES_PER_PULL or self._waiting_s >= MAX_WAITING_S
        return self._pull() if is_due else b""

    def finish(self) -> bytes:
        """End the input. Returns the rest of the output, including the resampler's tail."""
        self._graph.push(None)
        return self._pull()

    def _pull(self) -> bytes:
        import av

        self._waiting, self._waiting_s = 0, 0.0
        chunks = []
        while True:
            try:
                mixed = self._graph.pull()
            except (av.BlockingIOError, av.EOFError):  # no more output for now, or ever
                break
            chunks.append(bytes(mixed.planes[0])[: mixed.samples * self._frame_bytes])
        pcm = b"".join(chunks)
        skipped, self._skip_bytes = self._skip_bytes, max(0, self._skip_bytes - len(pcm))
        return pcm[skipped:]


def _mixing(source: Any, output: PcmFormat) -> tuple[str, list[tuple[str, str]]]:
    """The layout of the output, and the filters that mix frames of the layout `source` to that."""
    channels = source.nb_channels
    if output.separate and channels == output.channels:
        return source.name, []  # with another layout of as many channels, FFmpeg would mix them
    layout = {1: "mono", 2: "stereo"}.get(output.channels, f"{output.channels}c")
    # With integers, rounded weights could add up to more than 1 and overflow.
    return layout, [("aformat", "sample_fmts=fltp"), ("pan", f"{layout}|{_weights(channels, output)}")]


def _weights(channels: int, output: PcmFormat) -> str:
    """How the filter `pan` makes each channel of the output of the channels of a frame."""
    if output.separate:
        sources = [range(number, channels, output.channels) for number in range(output.channels)]
    elif channels == output.channels == 2:
        sources = [range(1), range(1, 2)]
    else:
        sources = [range(channels)] * output.channels
    return "|".join(f"c{number}={_mix(source)}" for number, source in enumerate(sources))


def _mix(channels: range) -> str:
    """The mean of some channels of a frame; silence if there are none."""
    return "+".join(f"{1 / len(channels):.9f}*c{channel}" for channel in channels) or "0*c0"


def _format(frame: Any) -> tuple[int, str, str]:
    return (frame.sample_rate, frame.format.name, frame.layout.name)
