"""Mixes and resamples frames of any format: to 16 kHz for Whisper, mono or each channel by itself, and to
mono or stereo for people.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from workers.media.balance import Balance, Floats
from workers.messages import BYTES_PER_SAMPLE, SAMPLE_RATE

FEW = 8  # frames of a second by which a mix is chosen: all would take a tenth of the time of decoding
TOGETHER = 8  # frames that are mixed at once: more fill the caches of a CPU
LOOKED_AT = 5  # of so many samples of these, one
SAME = 0.95  # of a sample, as far as it is the one before: low sounds are mostly that
FADE_S = 0.02  # from one mix to another
# The samples that others than the mean are made of, by FFmpeg's name: their type and its full scale. Those of
# 8 bits count from the middle of their range.
FLOATS = {"flt": ("f4", 1.0), "dbl": ("f8", 1.0)}
SAMPLE_TYPES = {"u8": ("u1", 2.0**7), "s16": ("i2", 2.0**15), "s32": ("i4", 2.0**31), **FLOATS}


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
        self._rate = first.sample_rate
        self._position = round(start_s * self._rate)  # of the next frame
        self._until = (self._position // self._rate + 1) * self._rate
        self._held: list[Any] = []  # frames that begin before `_until`, the end of a second
        self._balance = _balance(first, output)
        self._weights: Floats | None = None  # of the last second
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
        pcm = self._release() if self._position >= self._until else b""
        self._held.append(frame)
        self._position += frame.samples
        return pcm

    def finish(self) -> bytes:
        """End the input. Returns the rest of the output, including the resampler's tail."""
        pcm = self._release()
        self._graph.push(None)
        return pcm + self._pull()

    def _release(self) -> bytes:
        """Push the frames held, with the weights for their second."""
        held, self._held = self._held, []
        self._until = (self._position // self._rate + 1) * self._rate
        with np.errstate(all="ignore"):  # a damaged file may have samples that are no finite numbers
            for frame in self._balanced(held):
                self._graph.push(frame)
        return self._pull()

    def _balanced(self, frames: list[Any]) -> list[Any]:
        """The frames of a second: where another mix than the mean is due, with that in every channel."""
        balance = self._balance
        if balance is None or not frames:
            return frames
        balance.weigh(_looked_at(frames[:: max(1, len(frames) // FEW)]))
        before = balance.weights if self._weights is None else self._weights
        self._weights = balance.weights
        if before is balance.weights is balance.mean:
            return frames
        return [
            _remixed(frames[start : start + TOGETHER], before, balance.weights, start * frames[0].samples)
            for start in range(0, len(frames), TOGETHER)
        ]

    def _pull(self) -> bytes:
        import av

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
    channels, name = first.layout.nb_channels, first.format.name
    if output.separate or channels <= output.channels or name.removesuffix("p") not in SAMPLE_TYPES:
        return None
    bass = [place for place, channel in enumerate(first.layout.channels) if channel.name.startswith("LFE")]
    return Balance(channels, bass)


def _samples(frames: list[Any], step: int = 1) -> Floats:
    """Every so many samples of frames of one format, shape (channels, n): full scale 1."""
    first = frames[0]
    dtype, scale = SAMPLE_TYPES[first.format.name.removesuffix("p")]
    channels = first.layout.nb_channels
    blocks = [
        # PyAV may find one plane too many.
        [np.frombuffer(plane, dtype, frame.samples)[::step] for plane in frame.planes[:channels]]
        if first.format.is_planar
        else np.frombuffer(frame.planes[0], dtype, frame.samples * channels).reshape(-1, channels)[::step].T
        for frame in frames
    ]
    samples = np.concatenate(blocks, 1)
    return samples if scale == 1 else samples / np.float32(scale) - (dtype == "u1")


def _looked_at(frames: list[Any]) -> Floats:
    """What the weights of a second are chosen by. Of many channels, a low hum in one counts for little."""
    if frames[0].layout.nb_channels == 2:
        return _samples(frames, LOOKED_AT)
    each = [_samples([frame], LOOKED_AT) for frame in frames]
    return np.concatenate([samples[:, 1:] - SAME * samples[:, :-1] for samples in each], 1)


def _remixed(frames: list[Any], before: Floats, weights: Floats, begin: int) -> Any:
    """Frames as one with their mix in every channel. It begins so many samples after a change of weights."""
    from av import AudioFrame

    first, samples = frames[0], _samples(frames)
    dtype, scale = SAMPLE_TYPES[first.format.name.removesuffix("p")]
    mix = weights.astype(samples.dtype) @ samples
    faded = FADE_S * first.sample_rate
    fade = 1 - np.arange(begin, min(begin + len(mix), faded)) / faded
    mix[: len(fade)] += (before - weights) @ samples[:, : len(fade)] * fade
    mix = (np.rint((mix + (dtype == "u1")) * scale) if scale > 1 else mix).astype(dtype)
    result = AudioFrame(first.format.name, first.layout.name, len(mix))
    content = (mix if first.format.is_planar else np.repeat(mix, len(samples))).tobytes()
    for plane in result.planes[: len(samples)]:
        plane.update(content)
    result.sample_rate = first.sample_rate
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
    """How the filter `pan` makes each channel of the output: the mean of some of a frame's, or silence."""
    sources = [range(channels)] * output.channels
    if output.separate or channels == output.channels:
        sources = [range(number, channels, output.channels) for number in range(output.channels)]
    means = ["+".join(f"{1 / len(source):.9f}*c{channel}" for channel in source) for source in sources]
    return "|".join(f"c{number}={mean or '0*c0'}" for number, mean in enumerate(means))


def _format(frame: Any) -> tuple[int, str, str]:
    return (frame.sample_rate, frame.format.name, frame.layout.name)
