"""The pipelines of a recording's channels, which become one transcript: the channel is the speaker.

All channels are decoded first. Then each that differs from the others has a pipeline, all at the same time.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from app.common.errors import ClipFailed
from app.media.pcm_files import channel_path
from app.recording.clip_decoding import ClipKey
from app.recording.language_vote import LanguageVote
from app.recording.pipeline import Pipeline, first_error
from app.recording.recording_work import Observer, Progress, TranscriptionWork
from app.transcript.speakers.channels import join_channels
from app.transcript.timeline import Transcript
from workers.messages import SAMPLE_RATE, Decoded, Span

STEP = SAMPLE_RATE // 100  # samples: 10 ms
_BLOCK = 6000 * STEP  # read at once: a minute
_SILENCE = 1e-9  # energy of a sample, instead of none


class ChannelPipelines:
    """Makes the transcript of one recording, once, from the transcripts of its channels."""

    def __init__(self, work: TranscriptionWork) -> None:
        """`work`: its `pcm_path` is that of the first channel; those of the others are beside it."""
        # Words may be crosstalk one by one.
        self.work = replace(work, options=work.options.model_copy(update={"word_timestamps": True}))

    @property
    def errors(self) -> list[ClipFailed]:
        """See `Pipeline`."""
        return self.work.errors

    async def run(self) -> Transcript:
        """Transcribe the recording. Cancelling this cancels all work that is not in flight.

        Raises as `Pipeline.run` does.
        """
        try:
            decoded = self.work.decoded or await self._decode()
            progress = _JointProgress(decoded.channels, self.work.observer)
            vote = LanguageVote(decoded.channels)
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._transcribe(decoded, channel, vote, progress))
                    for channel in decoded.channels
                ]
        except BaseExceptionGroup as errors:
            raise first_error(errors) from None
        finally:
            self.work.media_pool.cancel(self.work.job)
            self.work.dispatcher.cancel(self.work.job)
        return await self._joined(decoded, [task.result() for task in tasks])

    async def _decode(self) -> Decoded:
        """Decode all channels, and report how far that is."""
        work = self.work
        async with aclosing(work.decode(work.observer.peaks, separate=True)) as steps:
            async for decoded in steps:
                ends = (decoded.samples, decoded.declared)
                seconds, declared_s = (max(0, end - work.selection.start) / SAMPLE_RATE for end in ends)
                if work.allowance is not None:
                    work.allowance.reserve(seconds if decoded.finished else max(seconds, declared_s))
                work.observer.progressed(Progress(seconds, declared_s=declared_s or None))
                if decoded.finished:
                    work.observer.decoded(decoded)
        return decoded

    async def _transcribe(
        self, decoded: Decoded, channel: int, vote: LanguageVote, progress: "_JointProgress"
    ) -> Transcript:
        work = replace(
            self.work,
            pcm_path=channel_path(self.work.pcm_path, channel),
            observer=_ChannelObserver(channel, progress),
            decoded=decoded,
            beside=[
                channel_path(self.work.pcm_path, other) for other in decoded.channels if other != channel
            ],
            channel=channel,
        )
        transcript = await Pipeline(work, vote).run()
        progress.ended(channel)
        return transcript

    async def _joined(self, decoded: Decoded, transcripts: Sequence[Transcript]) -> Transcript:
        work = self.work
        paths = [channel_path(work.pcm_path, channel) for channel in decoded.channels]
        first, names = transcripts[0], work.options.names_of_speakers
        joined = await work.helper.run(first.seconds, _join, transcripts, decoded.channels, paths, names)
        work.observer.transcribed(joined.segments)
        return joined


class _JointProgress:
    """The progress of all channels, for an observer of the recording.

    Times are the mean of the channels', so that `done_s` never exceeds `total_s`, the recording's.
    """

    def __init__(self, channels: Sequence[int], observer: Observer) -> None:
        self._progress = dict.fromkeys(channels, Progress())
        self._published = dict.fromkeys(channels, 0)  # up to which sample
        self._unfinished = set(channels)
        self._observer = observer

    def progressed(self, channel: int, progress: Progress) -> None:
        self._progress[channel] = progress
        every = self._progress.values()
        clips = [each.clips_total for each in every if each.clips_total is not None]
        self._observer.progressed(
            Progress(
                decoded_s=progress.decoded_s,
                total_s=progress.total_s,
                done_s=sum(each.done_s for each in every) / len(every),
                clips_done=sum(each.clips_done for each in every),
                clips_total=sum(clips) if len(clips) == len(every) else None,
            )
        )

    def published(self, channel: int, clip: Span, key: ClipKey | None) -> None:
        self._published[channel] = clip[1]
        until = min(self._published[each] for each in self._unfinished)
        self._observer.published(clip, key, channel, until)

    def ended(self, channel: int) -> None:
        self._unfinished.remove(channel)


@dataclass(frozen=True, slots=True)
class _ChannelObserver(Observer):
    """Passes on the progress of one channel."""

    channel: int
    joint: _JointProgress

    def progressed(self, progress: Progress) -> None:
        self.joint.progressed(self.channel, progress)

    def published(self, clip: Span, key: ClipKey | None, channel: int = 0, until: int | None = None) -> None:
        self.joint.published(self.channel, clip, key)


def _join(
    transcripts: Sequence[Transcript],
    channels: Sequence[int],
    pcm_paths: Sequence[Path],
    names: Sequence[str],
) -> Transcript:
    """As `join_channels`, with the channels' decoded audio, all of which this reads. Raises OSError."""
    return join_channels(transcripts, channels, [SoundLevels(path) for path in pcm_paths], names)


class SoundLevels:
    """The levels of a file of int16 samples. Takes about 3 MB for each hour."""

    def __init__(self, pcm_path: Path) -> None:
        """Reads all of the file: call it in a thread or a process. Raises OSError."""
        energies = [np.zeros(1)]
        with pcm_path.open("rb") as file:
            while pcm := file.read(2 * _BLOCK):
                samples = np.frombuffer(pcm, "<i2").astype(np.float64)
                energies.append(np.add.reduceat(samples * samples, np.arange(0, len(samples), STEP)))
        self._sums = np.cumsum(np.concatenate(energies))  # of the energy before each step

    def level(self, start: int, end: int) -> float:
        """The mean level between two samples, in dB of int16's steps. It is that of the steps of 10 ms."""
        first = min(start // STEP, len(self._sums) - 1)
        last = min(max(-(-end // STEP), first + 1), len(self._sums) - 1)
        energy = (self._sums[last] - self._sums[first]) / max(1, (last - first) * STEP)
        return float(10 * np.log10(max(energy, _SILENCE)))
