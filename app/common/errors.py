"""The service's errors. `server.errors` maps each class to an HTTP status."""

import errno
from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from typing import Any

NOT_KEPT = (
    "The recording of this job is not here any more. Recordings are deleted after a while, or when the job "
    "is done (`WHISPER_RESULT_TTL_S`, `WHISPER_KEEP_AUDIO`); submit it again to have it here."
)
STOPPING = "The service is stopping; send the request again."


class WhisperfleetError(Exception):
    """Something went wrong in the service.

    `message` says what is wrong and what to do about it. `param` names the field at fault. `code` is a
    short constant for programs to test.
    """

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        # The default would call the class with `args` alone, which loses param and code.
        return (partial(type(self), self.message, param=self.param, code=self.code), ())


def fault_of(problem: Mapping[str, Any]) -> str:
    """What is wrong with a value, in one of pydantic's errors: the words of our own validators alone."""
    return str(problem["msg"]).removeprefix("Value error, ")


class InvalidInput(WhisperfleetError):
    """The request, or the file in it, is not valid."""


class UploadStalled(InvalidInput):
    """The client sent a body too slowly. The message is `fault` (what happened) and the remedy."""

    def __init__(self, fault: str, remedy: str, *, code: str | None = None) -> None:
        super().__init__(f"{fault} {remedy}", code=code)
        self.fault = fault
        self._remedy = remedy

    def __reduce__(self) -> tuple[object, ...]:
        return (partial(type(self), self.fault, self._remedy, code=self.code), ())


class UnsuitableFormat(InvalidInput):
    """The requested format cannot hold the transcript. Another format can."""


class SpeakerModelUnavailable(InvalidInput):
    """The model that embeds voices is not here, so nobody can say who speaks."""

    def __init__(
        self, message: str, *, param: str | None = "diarize", code: str | None = "speaker_model_unavailable"
    ) -> None:
        super().__init__(message, param=param, code=code)


class Unauthorized(WhisperfleetError):
    """The API key is missing or wrong."""


class NotAllowed(WhisperfleetError):
    """The client may not do this, whatever its key."""


class OriginNotAllowed(WhisperfleetError):
    """A web page of another site may not send this request."""


class HostNotAllowed(WhisperfleetError):
    """The service does not answer under the host name of the request."""


class UnknownModel(WhisperfleetError):
    """The request names a model that this service does not offer."""


class UnknownNode(WhisperfleetError):
    """No node of the cluster has this id or name, or there is no cluster."""


class AmbiguousNode(WhisperfleetError):
    """Several nodes of the cluster have this name."""


class TooLarge(WhisperfleetError):
    """The file is larger or longer than the limit."""


class UnsupportedContentType(WhisperfleetError):
    """The path does not accept the request's Content-Type."""


class UnknownJob(WhisperfleetError):
    """There is no job with this id. It may have been deleted."""


class UnknownRevision(WhisperfleetError):
    """The job has no such revision of its transcript, or it is no longer kept."""


class JobNotDone(WhisperfleetError):
    """The job has no transcript: it is not done, or it failed."""


class NoVoices(WhisperfleetError):
    """The job has no embeddings of voices, so its speakers cannot be found again."""


class AudioNotKept(WhisperfleetError):
    """The recording of the job is not in the data folder: it was removed, or never arrived."""


class PreconditionFailed(WhisperfleetError):
    """The transcript has changed since the version that the request names in `If-Match`."""


class PreconditionRequired(WhisperfleetError):
    """The request changes a transcript, and does not say which version in `If-Match`."""


class UpgradeRequired(WhisperfleetError):
    """The address takes WebSockets alone, and the request is none."""


class LinkRefused(WhisperfleetError):
    """A signed link has expired, or is not one for this request."""


class NoKeys(WhisperfleetError):
    """The service requires no key, so there is nothing to protect."""


class NoTrash(WhisperfleetError):
    """The job cannot be put into the trash: there is none, or the job has a parent."""


class UnknownSharedLink(WhisperfleetError):
    """The job has no such shared link, or has it no more."""


class UnknownUpload(WhisperfleetError):
    """There is no resumable upload with this id that belongs to the client."""


class UploadExpired(WhisperfleetError):
    """The time of a resumable upload is over."""


class UploadConflict(WhisperfleetError):
    """The request does not fit the state of a resumable upload: its offset, or whether it is complete."""


class UploadLocked(WhisperfleetError):
    """Another front end has the upload, and does not give it up."""


class UnsupportedTusVersion(WhisperfleetError):
    """The request does not name the version of the protocol for resumable uploads that the service speaks."""


class KeyReused(WhisperfleetError):
    """The idempotency key already belongs to another request."""


class IllegalTransition(WhisperfleetError):
    """A job cannot change from its current state to the requested one."""


class LostLease(IllegalTransition):
    """Another front end runs the job by now: see `app.database.front_ends`."""


class UnknownStream(WhisperfleetError):
    """There is no live stream with this id that belongs to the client, or it can no longer be continued."""


class QueueFull(WhisperfleetError):
    """The queue has reached its limit."""


class InsufficientQuota(WhisperfleetError):
    """The owner's budget of this month does not suffice."""


class NotReady(WhisperfleetError):
    """No worker is available."""


class DatabaseUnavailable(WhisperfleetError):
    """The database is locked or does not answer."""


class OutcomeUnknown(DatabaseUnavailable):
    """The database failed at a commit: the transaction may be committed."""


class DiskFull(WhisperfleetError):
    """The disk of the data folder or of the database is full."""


class OutgrowsDisk(DiskFull):
    """The decoded audio of one recording needs more than the disk has. A retry would fill it again."""


class Fault(StrEnum):
    """Whose fault the end of a process is, as far as the way in which it ended shows it."""

    OWN = (
        "own"  # it crashed, hung, or took more memory than any other process: perhaps what it ran is at fault
    )
    MEMORY = "memory"  # the machine lacks memory
    OUTSIDE = "outside"  # something else has killed or stopped it, or nobody knows


class ProcessCrashed(WhisperfleetError):
    """A child process crashed, or was killed because it hung, before it answered.

    `exit_status` is that of the process, and negative if a signal killed it; None if it is not known.
    """

    def __init__(self, message: str, *, exit_status: int | None = None, fault: Fault = Fault.OUTSIDE) -> None:
        super().__init__(message)
        self.exit_status = exit_status
        self.fault = fault

    def __reduce__(self) -> tuple[object, ...]:
        again = partial(type(self), self.message, exit_status=self.exit_status, fault=self.fault)
        return (again, ())


class ProcessHung(ProcessCrashed):
    """A child process did not answer in time. It is killed."""


class ProcessLost(ProcessCrashed):
    """A process was lost with its node, or with the connection to it: no task is at fault."""


class ProcessStuck(WhisperfleetError):
    """A child process did not end although it was killed."""


class HelperFailed(WhisperfleetError):
    """The process for long transcripts crashed, used up its memory or did not answer in time, in one call."""


class DeviceFailed(ProcessCrashed):
    """The device of a process failed. The process is useless, and its tasks are probably not at fault."""


class StreamRefused(WhisperfleetError):
    """A live stream does not take what its client sends. The stream goes on, unless it is at an end."""


class RequeueBatch(WhisperfleetError):
    """A slot could not run a batch as it is. Its tasks return to the queue; none of them is at fault."""


class Expired(WhisperfleetError):
    """A task with a deadline was dropped: no slot could take it by then."""


class TaskCrashes(WhisperfleetError):
    """Every process that ran the task crashed."""


class Interrupted(WhisperfleetError):
    """All tries of a task or runs of a job were ended from outside: what it works on is not to blame."""


class ClipFailed(WhisperfleetError):
    """A clip could not be transcribed, even after several retries."""


class InvalidSetting(WhisperfleetError):
    """A setting is invalid. The service does not start, and prints the message as one line."""


class ClusterUnavailable(WhisperfleetError):
    """The Ray cluster cannot be reached, or must not be used. The message is one line, with the remedy."""


class ModelUnavailable(WhisperfleetError):
    """The model is not on this machine and cannot be downloaded."""


def no_descriptor(error: BaseException | None) -> NotReady | None:
    """What a client gets for an error that comes of a lack of descriptors; None for any other error."""
    while error is not None and getattr(error, "errno", None) not in (errno.EMFILE, errno.ENFILE):
        error = error.__cause__ or error.__context__
    text = "The service has as many files and connections open as it may have; try again later."
    return None if error is None else NotReady(text, code="too_many_files")


# Errors with which a job fails after its retries although its recording is not at fault, and their codes. A
# later job may succeed. HelperFailed is not among them: a transcript that is too much for it stays so.
FAILURE_CODES: Mapping[type[Exception], str] = {
    DiskFull: "disk_full",
    ModelUnavailable: "model_unavailable",
    SpeakerModelUnavailable: "speaker_model_unavailable",
}

# Codes of failures of which the recording is the cause: a later job of it, with the same options, fails, too.
RECORDING_AT_FAULT = frozenset((
    "audio_outgrows_disk", "audio_too_long", "audio_too_short", "broken_file", "clip_failed", "empty_file",
    "encrypted", "file_too_large", "helper_failed", "no_audio_track", "no_such_track", "not_audio",
    "start_after_end", "too_demanding", "too_many_channels", "unsupported_codec",
))  # fmt: skip
