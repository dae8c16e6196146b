"""The JSON of responses as types, which also make the OpenAPI document."""

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from app.api.transcripts.correction_bodies import CueMark
from app.jobs.corrections import Reason
from app.jobs.document import FailedSpan, Job, Moment
from app.pool.tasks import State
from app.transcript.cues.problems import Cure
from workers.messages import Warnings

Problems = Annotated[
    Warnings | None, Field(description="What is wrong with the recording; absent if nothing is.")
]


class Usage(BaseModel):
    type: Literal["duration"] = "duration"
    seconds: int = Field(description="Length of what was transcribed, rounded up (s).")


class TokenUsage(BaseModel):
    type: Literal["tokens"] = "tokens"
    input_tokens: int = Field(description="Of the audio: ten a second, as OpenAI counts them.")
    output_tokens: int = Field(description="Of the text, as the model wrote it.")
    total_tokens: int
    seconds: int = Field(description="Length of what was transcribed, rounded up (s).")


class Logprob(BaseModel):
    token: str = Field(description="A word, with the space before it.")
    bytes: list[int] = Field(description="The same in UTF-8.")
    logprob: float = Field(description="The natural logarithm of its probability.")


Logprobs = Annotated[
    list[Logprob] | None, Field(description="Of each word, with `include[]=logprobs`; else absent.")
]


class Transcription(BaseModel):
    text: str
    logprobs: Logprobs = None
    usage: Usage


class TranscriptDelta(BaseModel):
    type: Literal["transcript.text.delta"] = "transcript.text.delta"
    delta: str = Field(description="The next part of the text.")
    logprobs: Logprobs = None


class DiarizedSegment(BaseModel):
    type: Literal["transcript.text.segment"] = "transcript.text.segment"
    id: str
    start: float = Field(description="Seconds from the recording's start.")
    end: float = Field(description="Seconds from the recording's start.")
    text: str
    speaker: str = Field(description="`A`, `B`, …, or a name.")


class DiarizedTranscription(BaseModel):
    task: Literal["transcribe"] = "transcribe"
    duration: float = Field(description="Length of the recording (s).")
    text: str
    segments: list[DiarizedSegment]
    usage: Usage


class TranscriptDone(BaseModel):
    type: Literal["transcript.text.done"] = "transcript.text.done"
    text: str = Field(description="All of the text: the concatenated deltas.")
    logprobs: Logprobs = None
    segments: list[DiarizedSegment] | None = Field(
        None, description="Who says what, with `response_format=diarized_json`."
    )
    warnings: Problems = None
    usage: TokenUsage


class ReplacedTerm(BaseModel):
    at: int = Field(description="Where it is in the text without white space at its ends (characters).")
    write: str = Field(description="What is there now.")
    heard: str = Field(description="What the model wrote.")


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
    language: str | None = Field(
        None, description="Spoken language, ISO 639-1; only if several are spoken in the recording."
    )
    speaker: str | None = Field(None, description="Absent if it is not known.")
    terms: list[ReplacedTerm] | None = Field(
        None, description="What terms have replaced in the text; absent if there is nothing."
    )


class TranscriptionWord(BaseModel):
    word: str
    start: float = Field(description="Seconds from the recording's start.")
    end: float = Field(description="Seconds from the recording's start.")
    speaker: str | None = Field(None, description="Absent if it is not known.")


class VerboseTranscription(BaseModel):
    task: Literal["transcribe", "translate"]
    language: str = Field(description="Spoken language: its lower-case English name.")
    languages: dict[str, float] | None = Field(
        None,
        description="If several are spoken: each one, ISO 639-1, and its part of the text's time, 0 to 1; "
        "most first.",
    )
    duration: float = Field(description="Length of the recording (s).")
    text: str
    segments: list[TranscriptionSegment] | None = Field(
        None, description="Absent if the request asks only for words."
    )
    words: list[TranscriptionWord] | None = Field(
        None, description="Absent unless the request asks for words."
    )
    failed_spans: list[FailedSpan] | None = Field(
        None, description="The parts that could not be transcribed, with `allow_partial`."
    )
    warnings: Problems = None
    usage: Usage


class SpeechTimestamp(BaseModel):
    start: int = Field(description="Milliseconds from the recording's start.")
    end: int = Field(description="Milliseconds from the recording's start.")


class Model(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int = Field(description="Unix time (s).")
    owned_by: str = "whisperfleet"
    state: str = Field(description="`loaded` by a worker, or `unloaded`: a request for it loads it.")


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[Model]


class GpuUsage(BaseModel):
    memory_used: int | None = Field(description="Bytes, by all processes. Null if the driver does not know.")
    memory_total: int | None = Field(description="Bytes.")
    utilisation: float | None = Field(
        description="The part of the last moments in which the GPU computed, 0 to 1. Null for MIG instances."
    )


class JobClips(BaseModel):
    job: str = Field(description="The id of a job, or a name for a synchronous request.")
    kind: Literal["job", "request"]
    clips: int = Field(description="How many clips of the batch belong to it.")


class Working(JobClips):
    since: float = Field(description="Unix time (s) at which the worker began with the batch.")


class Worker(BaseModel):
    slot: int = Field(description="A number that another worker gets when this one is gone.")
    node: str | None = Field(description="Ray's id of the node with the worker. Null without a cluster.")
    node_name: str | None
    actor: str | None = Field(description="Ray's id of the actor with the worker. Null while there is none.")
    device: str
    visible_devices: str | None = Field(description="CUDA_VISIBLE_DEVICES in the worker.")
    pid: int | None
    model: str | None = Field(description="The default model.")
    models: list[str] = Field(description="The models in the worker's memory.")
    backend: str = Field(description="What computes the model: `ctranslate2` or `torch`; or `simulated`.")
    compute_type: str | None
    batch_size: int = Field(description="Largest number of clips in a batch; less where memory is short.")
    state: State
    loads: int = Field(description="How often the worker loaded a model.")
    batches: int
    clips: int
    audio_s: float = Field(description="Audio transcribed so far (s).")
    restarts: int
    error: str | None = Field(
        description="Why the worker failed or restarts, or why it uses less than the settings say."
    )
    notes: list[str] = Field(description="What the results of the worker's models lack, and why.")
    gpu: GpuUsage | None = Field(description="Of all processes on its GPU. Null without a GPU.")
    working: list[Working] = Field(description="The jobs and requests in the batch that it runs now.")
    front_end: str = Field("", description="The server process that has it. Missing if there is only one.")


class WorkerList(BaseModel):
    object: Literal["list"] = "list"
    data: list[Worker]


class NodeWorker(BaseModel):
    slot: int
    state: State


class Node(BaseModel):
    object: Literal["node"] = "node"
    id: str = Field(description="Ray's. A node that joins again gets another one.")
    name: str = Field(description="Of `ray start --node-name`; by default its address.")
    address: str
    state: Literal["ready", "draining", "drained", "unusable"] = Field(
        description="`draining`: its workers finish their batches and end. `drained`: they have ended, and "
        "it gets no new ones. `unusable`: see `fault`."
    )
    fault: str | None = Field(description="Why the node has no workers, in one line.")
    workers: list[NodeWorker]


class NodeList(BaseModel):
    object: Literal["list"] = "list"
    data: list[Node]


class Block(BaseModel):
    id: int = Field(description="Increases from block to block.")
    slot: int
    jobs: list[JobClips]
    start: float = Field(description="Unix time (s).")
    end: float = Field(description="Unix time (s).")
    clips: int
    audio_s: float = Field(description="Length of the audio that was decoded (s).")
    outcome: Literal["ok", "failed", "requeued"] = Field(
        description="`failed`: a clip has failed for good. `requeued`: the clips are retried."
    )


class Queue(BaseModel):
    clips: int = Field(description="Clips that wait for a worker.")
    oldest_s: float = Field(description="For how long the oldest of them has waited (s); 0 if there is none.")
    jobs: int | None = Field(description="Jobs that wait to run. Null while the database does not answer.")
    streams: int = Field(description="Live streams that are open.")


class FleetChange(BaseModel):
    time: float = Field(description="Unix time (s) of the server.")


class ListedWorkers(FleetChange):
    workers: list[Worker] = Field(description="Each replaces the one with its `slot`.")


class ChangedWorkers(ListedWorkers):
    removed: list[int] = Field(description="The slots of workers that are gone.")


class EndedBlocks(FleetChange):
    blocks: list[Block] = Field(description="Batches that have ended, oldest first.")


class ChangedQueue(FleetChange):
    queue: Queue


class Fleet(ListedWorkers, ChangedQueue):
    blocks: list[Block] = Field(description="The batches of the last five minutes, oldest first.")


class Match(BaseModel):
    """A sentence that a search has found."""

    text: str
    start: float = Field(description="Seconds from the recording's start.")
    segment: str = Field(description="The id of its segment.")


class ListedJob(Job):
    matches: list[Match] = Field(
        [],
        description="With `q`: the first sentences that have most of its words, at most three. Empty: the "
        "title, the notes, the tags or the file name have them.",
    )


class JobWebhook(BaseModel):
    type: Literal["job.succeeded", "job.failed", "job.cancelled", "job.corrected"]
    timestamp: Moment = Field(description="When the job changed.")
    data: Job = Field(description="The job as it was then.")


class JobList(BaseModel):
    object: Literal["list"] = "list"
    data: list[ListedJob]
    has_more: bool


class Link(BaseModel):
    path: str = Field(description="With its query. The server's address goes before it.")
    expires_at: Moment


class SharedLink(BaseModel):
    id: str
    job: str = Field(description="The id of the job that it opens.")
    correct: bool = Field(description="Whether it may correct the transcript.")
    audio: bool = Field(description="Whether it opens the recording and its waveform.")
    revisions: bool = Field(description="Whether it shows earlier revisions of the transcript.")
    created_at: Moment
    expires_at: Moment


class NewSharedLink(SharedLink):
    token: str = Field(description="What the link sends as bearer token. It is not shown again.")
    path: str = Field(description="Of the page, with the token. The server's address goes before it.")


class SharedLinkList(BaseModel):
    object: Literal["list"] = "list"
    data: list[SharedLink]


class Identity(BaseModel):
    owner: str | None = Field(description="Whose the requests are. Null: the service requires no key.")
    operator: bool = Field(description="Whether all jobs are visible, and the workers.")
    shared: SharedLink | None = Field(description="The shared link that the request is made by.")


class SegmentWord(BaseModel):
    word: str
    start: float = Field(description="Seconds from the recording's start.")
    end: float = Field(description="Seconds from the recording's start.")
    probability: float
    speaker: str | None = Field(None, description="Absent if it is not known.")


class TimedSegment(BaseModel):
    id: str = Field(description="No other segment of the transcript gets the same one.")
    start: float = Field(description="Seconds from the recording's start.")
    end: float = Field(description="Seconds from the recording's start.")
    text: str
    language: str | None = Field(
        None, description="Spoken language, ISO 639-1. Absent if one was chosen for the entire recording."
    )
    speaker: str | None = Field(description="Of the first word. Null if it is not known.")
    marks: list[CueMark] | None = Field(
        None, description="Where people want subtitles to begin, and where not; absent if there are none."
    )
    terms: list[ReplacedTerm] | None = Field(
        None, description="What terms have replaced in the text; absent if there is nothing."
    )
    words: list[SegmentWord]


class Segments(BaseModel):
    revision: int = Field(description="Number of the correction; 0: the original.")
    complete: bool = Field(description="Whether the job has succeeded, so that all of the text is here.")
    segments: list[TimedSegment] = Field(
        description="Ordered by their start. Those of one speaker overlap only if two speakers became one."
    )


class CueSource(BaseModel):
    id: str = Field(description="Of the segment.")
    index: int = Field(description="Its place among the segments, from 0.")
    from_: int = Field(alias="from", description="How many characters of its text stand before this part.")
    to: int = Field(description="The same for the end of the part. Characters are code points of Unicode.")
    marks: list[CueMark] | None = Field(None, description="Those in the part; absent if there are none.")


class CueProblem(BaseModel):
    limit: str = Field(
        description="The name of an option, whose limit the subtitle breaks: `min_gap_s` before the next "
        "one. Or `join`: such a mark before it cannot be kept."
    )
    value: float | None = Field(description="Null for `join`.")
    allowed: float | None = Field(description="The limit. Null for `join`.")
    cures: list[Cure] = Field(
        description="What may help, best first: to `shorten` the text, `split` the subtitle, `join` it (for "
        "the limit `join`: its segment) with a neighbour, move its `start` or its `end`."
    )


class FileCue(BaseModel):
    number: int = Field(description="Its place in the file, from 1.")
    start: float = Field(description="Seconds, as the file has them.")
    end: float = Field(description="Seconds, as the file has them.")
    lines: list[str] = Field(description="As people read them, without markup.")
    speakers: list[str | None] = Field(description="Who speaks each line. Null if it is not known.")
    language: str = Field(description="ISO 639-1.")
    cps: float = Field(description="Columns per second.")
    segments: list[CueSource] = Field(description="Where the text comes from, in order.")
    problems: list[CueProblem]


class Cues(BaseModel):
    revision: int = Field(description="Of the transcript, or the one that is corrected.")
    total: int = Field(description="How many subtitles the file has.")
    limits: dict[str, float] = Field(
        description="By the names of their options, for text in the language of the transcript."
    )
    cues: list[FileCue]


class Revision(BaseModel):
    revision: int = Field(description="Its number; 0 is the original.")
    created_at: Moment
    changed: int = Field(description="How many segments differ from the revision before it.")
    by_link: bool = Field(False, description="Somebody with a shared link made it.")
    reason: Reason | None = Field(
        description="`speakers`: they were named, chosen or found again, and all else stays. Null: it is the "
        "original, or an older version of the service made it."
    )
    restored: int | None = Field(description="The number of the revision that it brings back.")
    owner: str | None = Field(
        None, description="Who made it: the name of the key or the user, if that is known."
    )
    link: str | None = Field(None, description="The id of the shared link that made it.")


class RevisionList(BaseModel):
    object: Literal["list"] = "list"
    data: list[Revision]


class NewSegments(BaseModel):
    from_: float = Field(alias="from", description="Seconds from the recording's start.")
    to: float = Field(description="The transcript reaches this far (s).")
    segments: list[TimedSegment] = Field(
        description="They replace all segments that start at `from` or later."
    )


class Peaks(BaseModel):
    duration: float = Field(description="Length of the recording (s).")
    points: int
    min: list[float] = Field(description="The lowest sample of each point's part of the recording, -1 to 1.")
    max: list[float] = Field(description="The highest sample of each, -1 to 1.")
    rms: list[float] = Field(description="How loud each is, 0 to 1: the root mean square of its 20 ms peaks.")


class UsageEntry(BaseModel):
    day: str | None = Field(None, description="In UTC. Absent unless `by` names it, as owner and model are.")
    owner: str | None = Field(None, description="Empty if the service requires no key.")
    model: str | None = None
    jobs: int = Field(description="Jobs, requests and live streams.")
    minutes: float = Field(description="Length of what was transcribed.")


class UsageList(BaseModel):
    object: Literal["list"] = "list"
    from_: date = Field(alias="from")
    to: date
    data: list[UsageEntry]
    left_minutes: float | None = Field(description="Of the client's budget for this month, if it has one.")


class Health(BaseModel):
    status: Literal["ok"] = "ok"
    demo: bool = Field(description="The bundled demo model is in use; it understands only synthetic speech.")
    version: str
    front_ends: int = Field(
        description="Server processes that live, on all machines that share the database."
    )


class Ready(BaseModel):
    status: Literal["ready", "asleep"] = Field(
        "ready", description="`asleep`: no worker runs; the next request starts one."
    )
