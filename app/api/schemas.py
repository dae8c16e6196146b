"""What the service answers, as types: they make the JSON and the OpenAPI document alike."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from app.options import Options


class ErrorDetail(BaseModel):
    message: str = Field(description="What is wrong and what to do about it.")
    type: str
    param: str | None = Field(description="The field at fault.")
    code: str | None = Field(description="A short constant that a program can test for.")


class Error(BaseModel):
    error: ErrorDetail


class Usage(BaseModel):
    type: Literal["duration"] = "duration"
    seconds: int = Field(description="Length of the recording, rounded up (s).")


class Transcription(BaseModel):
    text: str
    usage: Usage


class TranscriptDelta(BaseModel):
    type: Literal["transcript.text.delta"] = "transcript.text.delta"
    delta: str = Field(description="Text that follows what was sent before.")


class TranscriptDone(BaseModel):
    type: Literal["transcript.text.done"] = "transcript.text.done"
    text: str = Field(description="The whole text: all deltas concatenated.")
    usage: Usage


class TranscriptionSegment(BaseModel):
    id: int
    seek: int = Field(description="Start in frames of 10 ms.")
    start: float = Field(description="Seconds from the recording's start.")
    end: float = Field(description="Seconds from the recording's start.")
    text: str
    tokens: list[int]
    temperature: float
    avg_logprob: float
    compression_ratio: float
    no_speech_prob: float


class TranscriptionWord(BaseModel):
    word: str
    start: float = Field(description="Seconds from the recording's start.")
    end: float = Field(description="Seconds from the recording's start.")


class FailedSpan(BaseModel):
    start: float = Field(description="Seconds from the recording's start.")
    end: float = Field(description="Seconds from the recording's start.")


class VerboseTranscription(BaseModel):
    task: Literal["transcribe", "translate"]
    language: str = Field(description="Language spoken: its lower-case English name.")
    duration: float = Field(description="Length of the recording (s).")
    text: str
    segments: list[TranscriptionSegment] | None = Field(
        None, description="Absent where only words were asked for."
    )
    words: list[TranscriptionWord] | None = Field(None, description="Absent unless asked for.")
    failed_spans: list[FailedSpan] | None = Field(
        None, description="What is missing where `allow_partial` was set and something failed."
    )
    usage: Usage


class Model(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int = Field(description="Unix time (s).")
    owned_by: str = "whisperfleet"
    state: str = Field(description="`loaded` by a worker, or `unloaded`: it is loaded when it is asked for.")


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[Model]


class Worker(BaseModel):
    slot: int
    device: str
    visible_devices: str | None = Field(description="CUDA_VISIBLE_DEVICES as the worker itself reads it.")
    pid: int | None
    model: str | None = Field(description="The default model.")
    models: list[str] = Field(description="The models that the worker holds in memory.")
    compute_type: str | None
    batch_size: int = Field(description="Most clips at once, as far as memory has allowed so far.")
    state: Literal["loading", "idle", "busy", "restarting", "failed"]
    loads: int = Field(description="How often this worker has loaded a model.")
    batches: int
    clips: int
    audio_s: float = Field(description="Audio transcribed so far (s).")
    restarts: int
    error: str | None = Field(description="Why the worker has failed, or works with less than was asked for.")


class WorkerList(BaseModel):
    object: Literal["list"] = "list"
    data: list[Worker]


class JobProgress(BaseModel):
    stage: Literal["queued", "downloading", "decoding", "transcribing", "done"]
    done_s: float = Field(description="Audio transcribed so far (s); never goes back.")
    total_s: float | None = Field(description="Length of the recording (s), once it is known.")
    clips_done: int
    clips_total: int | None
    realtime_factor: float | None = Field(description="Seconds of audio transcribed in a second.")


class JobError(BaseModel):
    message: str
    code: str | None


class Job(BaseModel):
    id: str
    object: Literal["job"] = "job"
    status: Literal["queued", "running", "succeeded", "failed", "cancelled"]
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    filename: str | None
    url: str | None = Field(description="Where the recording is or was fetched from.")
    duration: float | None = Field(description="Length of the recording (s).")
    language: str | None = Field(description="Language spoken, ISO 639-1.")
    model: str
    options: Options
    progress: JobProgress
    error: JobError | None
    failed_spans: list[FailedSpan] = Field(description="What could not be transcribed.")
    webhook_url: str | None


class JobList(BaseModel):
    object: Literal["list"] = "list"
    data: list[Job]
    has_more: bool


class Health(BaseModel):
    status: Literal["ok"] = "ok"
    demo: bool = Field(description="The bundled demo model answers; it understands synthetic speech only.")
    version: str


class Ready(BaseModel):
    status: Literal["ready"] = "ready"
