"""One transcript from those of the channels of a recording, in which each channel is a speaker. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from app.transcript.edited import EditedSegment, with_ids
from app.transcript.speakers.crosstalk import Loudness, without_crosstalk
from app.transcript.timeline import Transcript, joined_spans


def join_channels(
    transcripts: Sequence[Transcript],
    channels: Sequence[int],
    loudness: Sequence[Loudness],
    names: Sequence[str] = (),
) -> Transcript:
    """The transcripts of the channels as one, ordered by time, without crosstalk.

    `channels`: the number of each channel; `loudness`: of each channel; `names`: see `speaker_labels`.
    """
    parts: Sequence[Sequence[EditedSegment]] = [
        tuple(with_ids(transcript.segments, transcript.clips, channel))
        for transcript, channel in zip(transcripts, channels, strict=True)
    ]
    parts = without_crosstalk(parts, loudness)
    speaking = [(channel, part) for channel, part in zip(channels, parts, strict=True) if part]
    by_start = sorted(speaking, key=lambda speaker: speaker[1][0].start)
    labels = speaker_labels([channel for channel, _ in by_start], names)
    segments = [replace(segment, speaker=labels[channel]) for channel, part in speaking for segment in part]
    return replace(
        max(transcripts, key=lambda transcript: len(transcript.clips)),  # for the language of most clips
        speech=tuple(joined_spans(sorted(span for transcript in transcripts for span in transcript.speech))),
        segments=in_order(segments),
        failed_spans=tuple(sorted({span for transcript in transcripts for span in transcript.failed_spans})),
        clips=tuple(sorted({span for transcript in transcripts for span in transcript.clips})),
    )


def in_order(segments: Iterable[EditedSegment]) -> tuple[EditedSegment, ...]:
    """The segments of several channels, channel by channel, ordered by their start."""
    return tuple(sorted(segments, key=lambda segment: segment.start))


def speaker_labels(channels: Sequence[int], names: Sequence[str]) -> dict[int, str]:
    """The label of each channel; `channels`: in the order in which somebody speaks on them first.

    The names are those of channel 0, 1, and so on. A channel without a name is `S1`, `S2`, … by its place in
    the order.
    """
    labels: dict[int, str] = {}
    for place, channel in enumerate(channels, 1):
        labels[channel] = channel_name(channel, names) or f"S{place}"
    return labels


def channel_name(channel: int, names: Sequence[str]) -> str | None:
    """The name of the person who speaks on a channel, if it is known."""
    return names[channel] if channel < len(names) else None
