"""The work on one recording: all that its transcription needs, its progress and its observer."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from app.common.errors import ClipFailed, Interrupted, TaskCrashes, WhisperfleetError
from app.common.options import Options
from app.engines.window_request import WindowRequest
from app.intake.budgets import Allowance
from app.media.peaks import PeakCollector
from app.pool.dispatcher import Dispatcher
from app.pool.helper import Helper
from app.recording.clip_decoding import ClipKey
from app.recording.clip_planner import MAX_SILENCE_SAMPLES, PlannedClip
from app.recording.clip_search import RecordingWork
from app.recording.result_cache import ClipResults
from app.transcript.speakers.labelling import KnownSpeaker
from app.transcript.terms import Term
from workers.messages import FULL_CONTEXT_S, SAMPLE_RATE, Decoded, Segment, Span, WindowResult

WindowDispatcher = Dispatcher[WindowRequest, WindowResult]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a recording, or of its part. Times in s; totals are None until they are known."""

    decoded_s: float = 0.0
    total_s: float | None = None
    done_s: float = 0.0  # audio in clips that are done
    clips_done: int = 0
    clips_total: int | None = None
    declared_s: float | None = None  # the total as the file gives it

    @property
    def expected_s(self) -> float | None:
        """The total, or what is known of it before all is decoded."""
        if self.total_s is not None or self.declared_s is None:
            return self.total_s
        return max(self.declared_s, self.decoded_s)


class Observer:
    """Is called as a recording makes progress. Override what you need."""

    wants_segments: ClassVar[bool] = False  # whether `transcribed` is called
    sent_s = 0.0  # of audio, whose text the client has before the end
    peaks: PeakCollector | None = None  # gets the peaks of the recording, unless an earlier run decoded it

    def decoded(self, decoded: Decoded) -> None:
        """Called once, when the recording is decoded. Not called if an earlier run decoded it."""

    def progressed(self, progress: Progress) -> None:
        """Called with the new progress, at every change."""

    def transcribed(self, segments: Sequence[Segment]) -> None:
        """Called with the next segments of the transcript, in order and without a gap."""

    def published(self, clip: Span, key: ClipKey | None, channel: int = 0, until: int | None = None) -> None:
        """Called for each clip, in the order of its channel, once the transcript has its segments.

        `key`: of the clip's result. None if the clip failed and the request allows that. `until`: the
        transcript has the segments of all channels up to this sample. None: up to the clip's end.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptionWork(RecordingWork):
    """One recording that is transcribed, for one request or one run of a job."""

    options: Options
    model: str
    dispatcher: WindowDispatcher
    results: ClipResults
    helper: Helper
    observer: Observer = field(default_factory=Observer)
    max_silence: int = MAX_SILENCE_SAMPLES  # inside a clip
    min_context_s: float = FULL_CONTEXT_S  # of audio for the encoder, see `audio_context`
    channel: int = 0  # of the recording, if its channels are transcribed separately
    # Voices that the client knows. None: they are embedded, and the caller finds who speaks.
    known: Sequence[KnownSpeaker] | None = ()
    terms: tuple[Term, ...] = ()  # replace what the model wrote
    allowance: Allowance | None = None  # that reserves its length; None: it is free
    errors: list[ClipFailed] = field(default_factory=list)  # with which it went on


def is_due_to_clip(error: Exception) -> bool:
    """Whether other clips may not fail: processes crash on this one, or lack the memory for it."""
    return isinstance(error, TaskCrashes | Interrupted) or not isinstance(error, WhisperfleetError)


def clip_failed(clip: PlannedClip, error: Exception) -> ClipFailed:
    """The error for a clip that cannot be transcribed; its code says whether the clip is at fault."""
    return ClipFailed(
        f"The span from {clip.start / SAMPLE_RATE:.2f} s to {clip.end / SAMPLE_RATE:.2f} s could not be "
        f"transcribed: {error}",
        code=failure_code(error),
    )


def failure_code(error: Exception) -> str:
    """The code of a clip that failed with this error."""
    return "clip_interrupted" if isinstance(error, Interrupted) else "clip_failed"
