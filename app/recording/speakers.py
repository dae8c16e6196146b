"""The speakers of one recording: the voices in its clips, and the labels of its transcript."""

from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from app.common.errors import ClipFailed
from app.common.options import Options
from app.recording.clip_planner import PlannedClip
from app.recording.recording_work import TranscriptionWork, failure_code, is_due_to_clip
from app.telemetry import traces
from app.transcript.packed import PackedSegments
from app.transcript.speakers.labelling import SpeakerCount, with_speakers
from app.transcript.speakers.voices import Voices, pack_voices, voice_windows
from app.transcript.timeline import Transcript
from workers.messages import SAMPLE_RATE, Span

_PACKED_TOGETHER = 100  # segments

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class SpeakerFinder:
    """Embeds the voices in the clips of one recording, in any order, and labels its transcript in the end.

    The voices of a clip depend on its span alone, and the labels on all voices in order of time.
    """

    work: TranscriptionWork
    _voices: dict[Span, bytes] = field(default_factory=dict, repr=False)  # packed, by clip

    async def embed(self, clip: PlannedClip) -> None:
        """Embed the voices in a clip, unless that is done.

        A clip that fails for good has no voices if the request allows a partial transcript. Otherwise this
        raises ClipFailed.
        """
        work, windows = self.work, voice_windows(clip.speech)
        if not windows:
            return

        async def embed(span: Span) -> bytes:
            embeddings = await work.media_pool.embed_voices(work.job, work.pcm_path, windows)
            return pack_voices(Voices(windows, embeddings))

        span = (clip.start, clip.end)
        try:
            self._voices[span] = await work.results.get_or_embed(span, embed)
        except Exception as error:
            if not is_due_to_clip(error):
                raise
            if not work.options.allow_partial:
                raise _without_voices(span, error) from error
            work.errors.append(_without_voices(span, error))
            log.warning("continuing without the voices of a clip", error=_reason(error))

    async def label(self, transcript: Transcript) -> Transcript:
        """The transcript with its speakers, once all clips are embedded; see `TranscriptionWork.known`."""
        options = self.work.options
        if self.work.known is None:
            return transcript
        voices = [self._voices[span] for span in sorted(self._voices)]
        how = (voices, speaker_count(options), options.names_of_speakers, self.work.known)
        with traces.span("find speakers") as span:
            labelled = await self.work.helper.run(transcript.seconds, _labelled, transcript, *how)
            span.set_attribute("whisperfleet.clips", len(voices))
        return labelled


def _labelled(transcript: Transcript, *how: Any) -> Transcript:
    """As `with_speakers`, with its segments packed: the server reads it from a pipe."""
    labelled, packed = with_speakers(transcript, *how), PackedSegments()
    for start in range(0, len(labelled.segments), _PACKED_TOGETHER):
        packed.extend(labelled.segments[start : start + _PACKED_TOGETHER])
    return replace(labelled, segments=packed)


def speaker_count(options: Options) -> SpeakerCount:
    """How many people may speak."""
    if options.num_speakers is not None:
        return SpeakerCount(options.num_speakers, options.num_speakers)
    return SpeakerCount(options.min_speakers or 1, options.max_speakers)


def _reason(error: Exception) -> str:
    return "a media worker has too little memory" if isinstance(error, MemoryError) else str(error)


def _without_voices(span: Span, error: Exception) -> ClipFailed:
    start_s, end_s = (sample / SAMPLE_RATE for sample in span)
    return ClipFailed(
        f"The voices between {start_s:.2f} s and {end_s:.2f} s could not be compared: {_reason(error)}",
        code=failure_code(error),
    )
