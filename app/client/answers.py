"""Answers of a service, and the errors that a client raises for them."""

from typing import Any

import httpx

from app.common.errors import WhisperfleetError

_MAX_RETRY_AFTER_S = 60.0
_NO_LISTENER = "All connection attempts failed"  # httpx's words for a refused connection


class NotNow(WhisperfleetError):
    """The service cannot take the request now, and may take it later."""

    def __init__(self, message: str, *, wait_s: float = 0.0, busy: bool = False) -> None:
        super().__init__(message)
        self.notice = message  # for people who know which service it is about
        self.wait_s = wait_s  # at least, before the next attempt
        self.busy = busy  # it is there, and its queue is full


class Unreachable(NotNow):
    """The service does not answer."""

    def __init__(self, name: str, error: httpx.HTTPError) -> None:
        """`name` is the address of the service, and `error` why there is no answer."""
        cause = str(error) or type(error).__name__
        if cause == _NO_LISTENER:
            cause = "nothing listens there. Start it (`whisperfleet serve`), or check its address and port"
        super().__init__(f"{name} cannot be reached: {cause}")
        self.notice = f"it cannot be reached ({cause})"


class ServiceFault(NotNow):
    """The service failed unexpectedly. Perhaps this recording is the cause."""


class NoAccess(WhisperfleetError):
    """The service refuses the key, or sends to another address."""


class Refused(WhisperfleetError):
    """The service does not take this recording. A repetition would not change that."""

    def __init__(self, message: str, *, status: int = 0, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.status = status


class KeyTaken(WhisperfleetError):
    """The idempotency key has a job for another request."""


class NotRead(WhisperfleetError):
    """The recording could not be read or transcribed for now, or changed while it was sent."""


def error_message(answer: httpx.Response) -> str:
    """The error in an answer, or its status if it has none, as those of proxies."""
    return str(
        _error(answer).get("message")
        or f"the server answered {answer.status_code} {answer.reason_phrase}".rstrip()
    )


def error_code(answer: httpx.Response) -> str:
    """The code of the error in an answer; empty if it has none."""
    return str(_error(answer).get("code") or "")


def retry_after_s(answer: httpx.Response) -> float:
    """How long the service asks to wait (s), a minute at most; 0 if it says nothing."""
    text = answer.headers.get("retry-after", "")
    return min(float(text), _MAX_RETRY_AFTER_S) if text.isdecimal() else 0.0


def json_object(answer: httpx.Response) -> dict[str, Any]:
    """The JSON object in an answer; an empty one if there is none, as in the pages of proxies."""
    try:
        document = answer.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _error(answer: httpx.Response) -> dict[str, Any]:
    error = json_object(answer).get("error")
    return error if isinstance(error, dict) else {}
