"""The address of a whisperfleet service, and what its answers say: for the commands that are its clients."""

from typing import Any

import httpx

from app.errors import InvalidInput

_MAX_RETRY_AFTER_S = 60.0


def service_url(server: str) -> httpx.URL:
    """The address below which a service has its paths, with `/` at the end.

    Takes it as users have it: with or without a scheme, with `/v1` or a slash at the end, under a path of a
    proxy. Raises InvalidInput.
    """
    try:
        url = httpx.URL(server if "://" in server else f"http://{server}")
    except httpx.InvalidURL as error:
        raise InvalidInput(f"--server {server} is no address: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidInput(f"--server {server} is no address: write it as http://host:8000")
    path = url.path.rstrip("/").removesuffix("/v1")
    return url.copy_with(path=f"{path}/", query=None, fragment=None)


def key_headers(api_key: str | None) -> dict[str, str]:
    """The headers with an API key; none without a key. Raises InvalidInput for a malformed one."""
    if not api_key:
        return {}
    if not (api_key.isascii() and api_key.isprintable()):
        raise InvalidInput("the API key has characters that no key may have: check it")
    return {"Authorization": f"Bearer {api_key}"}


def public_name(url: httpx.URL) -> str:
    """The address without a password, for lines that people read."""
    return str(url.copy_with(userinfo=b""))


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


def cause(error: httpx.HTTPError) -> str:
    """Why a request had no answer."""
    return str(error) or type(error).__name__


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
