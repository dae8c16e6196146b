"""What can go wrong, as the service tells it; the HTTP status of each stands in `api.errors` alone."""


class WhisperfleetError(Exception):
    """Something went wrong in the service.

    `message` says what is wrong and what to do about it, `param` names the field at fault, `code` is a
    short constant that a program can test for.
    """

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        # The default would call the class with `args` alone and so lose param and code on the way.
        return (_rebuild, (type(self), self.message, self.param, self.code))


def _rebuild(cls: type[WhisperfleetError], message: str, param: str | None, code: str | None) -> object:
    return cls(message, param=param, code=code)


class InvalidInput(WhisperfleetError):
    """The request, or the file in it, cannot be used as it is."""


class Unauthorized(WhisperfleetError):
    """The API key is missing or wrong."""


class UnknownModel(WhisperfleetError):
    """The request names a model that this service does not offer."""


class TooLarge(WhisperfleetError):
    """The file is over a limit of size or duration."""


class UnsupportedContentType(WhisperfleetError):
    """The path does not take this request Content-Type."""


class UnknownJob(WhisperfleetError):
    """There is no job of that name, or not any more."""


class JobNotDone(WhisperfleetError):
    """The job has no transcript: not yet, or it never will."""


class KeyReused(WhisperfleetError):
    """An idempotency key stands for another request already."""


class IllegalTransition(WhisperfleetError):
    """A job cannot go from the state that it is in to the one that it was to have."""


class QueueFull(WhisperfleetError):
    """As many requests as allowed are waiting already."""


class NotReady(WhisperfleetError):
    """No worker is there to do the work."""


class DatabaseUnavailable(WhisperfleetError):
    """The database is locked, or gone."""


class DiskFull(WhisperfleetError):
    """The data folder's disk has no room left."""


class ProcessCrashed(WhisperfleetError):
    """A child process ended, or was ended because it hung, before it had answered."""


class RequeueBatch(WhisperfleetError):
    """A slot could not do a batch as it was: it goes back to the queue, and none of its tasks is to blame."""


class TaskCrashes(WhisperfleetError):
    """A piece of work killed each process that took it on."""


class ClipFailed(WhisperfleetError):
    """A clip could not be transcribed, although it was tried several times."""


class InvalidSetting(WhisperfleetError):
    """A setting makes no sense; the start ends with this one line."""


class ModelUnavailable(WhisperfleetError):
    """The model is neither on this machine nor downloadable."""
