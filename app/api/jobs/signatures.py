"""Signed paths: whoever has one may GET it without an API key until it expires. Pure."""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable
from urllib.parse import parse_qsl

from app.common.errors import LinkRefused
from app.common.ids import ID

_VERSION = "whisperfleet link 1"  # a signature of another scheme is never valid here
_PATH = re.compile(rf"/v1/jobs/{ID.pattern}/(audio|result)")
_QUERY = re.compile(
    r"(?P<signed>(.*&)?expires=(?P<expires>[0-9]{1,12}))&signature=(?P<signature>[\w-]{43})", re.A
)

SHARED = "shared"  # the parameter with the id of the shared link that has made a link
LINK_PARAMETERS = frozenset({SHARED, "expires", "signature"})  # that links add to those of their path

_ASK_AGAIN = "Ask for a new link: `POST /v1/jobs/{id}/links`, with an API key."


def signed_query(secret: bytes, path: str, query: str, expires: int) -> str:
    """The query of a link: `query` with the time of service `expires` (s) and the signature.

    `path` is below the root path. `query` is encoded; it may be empty.
    """
    signed = f"{query}&expires={expires}" if query else f"expires={expires}"
    return f"{signed}&signature={_signature(secret, path, signed)}"


def shared_link_id(query: bytes) -> str | None:
    """The id of the shared link that has made a signed link, from the query of the latter."""
    return dict(parse_qsl(query.decode("latin-1"))).get(SHARED)


def has_signature(query: bytes) -> bool:
    """Whether a request's query has the parameter `signature`, also a wrong one."""
    return any(name == "signature" for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True))


def check_link(secrets: Iterable[bytes], method: str, path: str, query: bytes, now: float) -> str:
    """The signature of the link that a request is. `secrets`: those that may have signed it.

    Raises LinkRefused unless it is one, and the time of service `now` (s) is before its end.

    The query must be the same to the byte, so its parameters have only one order and one spelling.
    """
    found = _QUERY.fullmatch(query.decode("latin-1"))
    if (
        found is None
        or method != "GET"
        or not _PATH.fullmatch(path)
        or not any(
            hmac.compare_digest(_signature(secret, path, found["signed"]), found["signature"])
            for secret in secrets
        )
    ):
        raise LinkRefused(
            "This link is not valid: it was withdrawn, or it is for another path, query or method. "
            + _ASK_AGAIN,
            param="signature",
        )
    if int(found["expires"]) <= now:
        raise LinkRefused("This link has expired. " + _ASK_AGAIN, param="expires")
    return found["signature"]


def _signature(secret: bytes, path: str, query: str) -> str:
    """HMAC-SHA256 in base64url without padding: 43 characters, which are compared instead of the bytes.

    The last of them has unused bits, so several spellings would decode to the same bytes.
    """
    message = "\n".join((_VERSION, "GET", path, query))
    digest = hmac.digest(secret, message.encode("latin-1"), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
