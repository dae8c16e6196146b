"""Versions of what a request gets or changes: ETags (RFC 9110, 13.1), and revisions of transcripts."""

import re
from collections.abc import Mapping
from typing import Annotated

from fastapi import Header, Query, Request
from starlette.responses import Response

from app.api.http.keys import shared_link_of
from app.api.transcripts.correction_bodies import RevisionNumber, revision_number
from app.common.errors import InvalidInput, NotAllowed

ETAG = {"ETag": {"schema": {"type": "string"}, "description": "Changes with the content."}}

IfNoneMatch = Annotated[
    str, Header(description="ETags that the client has. If one of them is current, the answer is 304.")
]
IfMatch = Annotated[
    str | None,
    Header(
        description="Required: the ETag of the segments that are corrected, or `*` for any. If the "
        "transcript has changed since, the answer is 412."
    ),
]
WHICH_REVISION = "Number of a revision, or `original`. Default: the newest."
WantedRevision = Annotated[RevisionNumber | None, Query(description=WHICH_REVISION)]

_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_SO_FAR = re.compile(r'"0\.([0-9]{1,9})"')  # see `so_far_etag`
_ANY = "*"


def is_known(if_none_match: str, etag: str) -> bool:
    """Whether an `If-None-Match` header says that the client has a version. Weak ETags count."""
    tags = [tag.removeprefix("W/") for tag in _TAG.findall(if_none_match)]
    return etag in tags or if_none_match.strip() == _ANY


def not_modified(headers: Mapping[str, str]) -> Response:
    """The 304 for a client that has the version: with `headers`, which the full response would have."""
    return Response(status_code=304, headers=headers)


def if_match_of(request: Request) -> str:
    """The whole `If-Match` header: a list may come in several lines."""
    return ", ".join(request.headers.getlist("if-match"))


def is_current(if_match: str, etag: str) -> bool:
    """Whether an `If-Match` header names a version.

    Proxies that compress answers make ETags weak. RFC 9110 wants such tags to match nothing, since they may
    stand for several versions; these are numbers of revisions, so each stands for one. Raises InvalidInput if
    the header is malformed.
    """
    if if_match.strip() == _ANY:
        return True
    # No header has a NUL. A comma may be inside a tag, and a list may have empty elements.
    elements = {element.strip() for element in _TAG.sub("\0", if_match).split(",")} - {""}
    if elements != {"\0"}:
        raise InvalidInput(
            f"`If-Match` has {if_match[:100]!r}, which is no ETag. Send the ETag of the segments as it came, "
            "with its quotes.",
            param="If-Match",
        )
    return is_known(if_match, etag)


def seen_version(if_match: str, newest: int) -> int:
    """The version of a transcript so far that an `If-Match` header names; -1: none.

    Raises InvalidInput as `is_current`.
    """
    is_any = is_current(if_match, so_far_etag(newest))
    return newest if is_any else max(map(int, _SO_FAR.findall(if_match)), default=-1)


def so_far_etag(version: int) -> str:
    """The ETag of the segments of a job that has no revision yet; see `Store.segments_version`."""
    return f'"0.{version}"'


def revision_etag(revision: int) -> str:
    """The ETag of the segments of a revision."""
    return f'"{revision}"'


def wanted_number(request: Request, revision: int | str | None) -> int | None:
    """The revision that a request wants; None: the newest. Raises NotAllowed for shared links to read."""
    if revision is None:
        return None
    shared = shared_link_of(request)
    if shared is not None and not shared.may("GET", "revisions"):
        raise NotAllowed("This shared link shows the newest revision alone; leave `revision` out.")
    return revision_number(revision)
