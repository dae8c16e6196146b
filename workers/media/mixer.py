"""Mixes and resamples frames of any format: to 16 kHz for Whisper, mono or each channel by itself, and to
mono or stereo for people.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workers.media.balance import Balance, Floats, Weights, is_usual
from workers.messages import BYTES_PER_SAMPLE, SAMPLE_RATE

FRAMES_PER_PULL = 16  # a pull of the output costs about as much as a push of a frame
MAX_WAITING_S = 10.0  # pushed before a pull: a frame may last a minute
LOOKED_AT = 3  # of so many samples, one tells how loud the channels are
FEW = 4  # frames of a second: in stereo, more would take a tenth of the time of decoding
FADE_S = 0.02  # from one mix to another
# By FFmpeg's name of the samples: their type, its full scale, and its zero.
SAMPLE_TYPES: dict[str, tuple[Any, float, float]] = {
    "u8": (np.uint8, 2.0**7, 2.0**7),
    "s16": (np.int16, 2.0**15, 0.0),
    "s32": (np.int32, 2.0**31, 0.0),
    "flt": (np.float32, 1.0, 0.0),
    "dbl": (np.float64, 1.0, 0.0),
}


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
    """Mixes the channels of frames of one format, and resamples them.

    They have equal weight, except in seconds in which that would lose sound: see `Balance`.

    Stereo frames keep their two channels if the result has two. If the result has separate channels, each
    channel is in one of them: in its own, or mixed into an earlier one if the result has fewer.

    FFmpeg's own down-mix drops the bass channel, weighs the centre channel more and, with floats, clips.
    """

    def __init__(
        self, first: Any, skip: int = 0, output: PcmFormat = SPEECH, cut: int = 0, start_s: float = 0.0
    ) -> None:
        """For frames of the format of `first`, which begins at `start_s` in the recording.

        Drops the first `cut` samples of the frames, and the first `skip` of the result.
        """
        from av.filter import Graph

        self._format = _format(first)
        self._frame_bytes = output.frame_bytes
        self._skip_bytes = skip * output.frame_bytes
        self._balance = _balance(first, output)
        self._rate = first.sample_rate
        self._position = round(start_s * first.sample_rate)  # of the next frame
        self._held: list[Any] = []  # frames of the second that is not complete yet
        self._until = 0  # where that ends
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
        """Take a frame. Returns the output that is ready: often nothing, sometimes that of several frames."""
        frame.pts = None  # its place is known already
        if self._balance is not None:
            pcm = self._release() if self._position >= self._until else b""
            self._held.append(frame)
            self._position += frame.samples
            return pcm
        self._graph.push(frame)
        self._waiting += 1
        self._waiting_s += frame.samples / frame.sample_rate
        is_due = self._waiting == FRAMES_PER_PULL or self._waiting_s >= MAX_WAITING_S
        return self._pull() if is_due else b""

    def finish(self) -> bytes:
        """End the input. Returns the rest of the output, including the resampler's tail."""
        pcm = self._release()
        self._graph.push(None)
        return pcm + self._pull()

    def _release(self) -> bytes:
        """Push the frames held, with the weights for their second."""
        held, self._held = self._held, []
        self._until = (self._position // self._rate + 1) * self._rate
        if self._balance is None or not held:
            return b""
        before, equal = self._balance.weights, self._balance.equal
        few = held[:: max(1, len(held) // FEW)]
        if before is not equal or len(equal) > 2 or not all(is_usual(*_channels(frame)) for frame in few):
            self._balance.weigh(_samples(held))
        weights, begin = self._balance.weights, 0
        for frame in held:
            is_fading = weights is not before and begin < FADE_S * self._rate
            usual = weights is equal and not is_fading
            self._graph.push(frame if usual else _remixed(frame, before, weights, begin))
            begin += frame.samples
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


def _balance(first: Any, output: PcmFormat) -> Balance | None:
    """What finds the weights for the channels of such frames; None where there is nothing to choose."""
    channels = first.layout.nb_channels
    known = first.format.name.removesuffix("p") in SAMPLE_TYPES
    if output.separate or channels <= output.channels or not known:
        return None
    bass = [place for place, channel in enumerate(first.layout.channels) if channel.name.startswith("LFE")]
    return Balance(channels, bass)


def _channels(frame: Any, step: int = LOOKED_AT) -> list[Floats]:
    """Every so many samples of each channel of a frame, of full scale 1."""
    dtype, scale, zero = SAMPLE_TYPES[frame.format.name.removesuffix("p")]
    if frame.format.is_planar:
        found = [np.frombuffer(plane, dtype, frame.samples)[::step] for plane in frame.planes]
    else:
        channels = frame.layout.nb_channels
        samples = np.frombuffer(frame.planes[0], dtype, frame.samples * channels)
        found = list(samples.reshape(-1, channels)[::step].T)
    if scale == 1:
        return found
    return [(channel - np.float32(zero)) / np.float32(scale) for channel in found]


def _samples(frames: Sequence[Any]) -> Floats:
    """Every so many samples of frames: shape (channels, n), full scale 1."""
    return np.concatenate([_channels(frame) for frame in frames], axis=1)


def _remixed(frame: Any, before: Weights, weights: Weights, begin: int) -> Any:
    """A frame with its mix in every channel. It begins so many samples after a change of the weights."""
    from av import AudioFrame

    samples = np.array(_channels(frame, 1))
    fade = np.clip((begin + np.arange(frame.samples)) / (FADE_S * frame.sample_rate), 0, 1)
    mix = before @ samples * (1 - fade) + weights @ samples * fade
    dtype, scale, zero = SAMPLE_TYPES[frame.format.name.removesuffix("p")]
    if scale != 1:
        limits = np.iinfo(dtype)
        mix = np.clip(np.rint(mix * scale + zero), limits.min, limits.max)
    everywhere = np.broadcast_to(mix.astype(dtype), samples.shape)
    values = everywhere if frame.format.is_planar else everywhere.T.reshape(1, -1)
    result = AudioFrame.from_ndarray(np.ascontiguousarray(values), frame.format.name, frame.layout.name)
    result.sample_rate = frame.sample_rate
    return result


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
