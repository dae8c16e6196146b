"""Conditions on the version of what a request gets or changes (RFC 9110, 13.1)."""

import re

from app.errors import InvalidInput

_TAG = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"'
_TAGS = re.compile(rf"[ \t,]*{_TAG}(?:[ \t]*,[ \t]*(?:{_TAG})?)*[ \t]*")
_ANY = "*"


def is_known(if_none_match: str, etag: str) -> bool:
    """Whether an `If-None-Match` header says that the client has a version. Weak ETags count."""
    tags = [tag.removeprefix("W/") for tag in re.findall(_TAG, if_none_match)]
    return etag in tags or if_none_match.strip() == _ANY


def is_current(if_match: str, etag: str) -> bool:
    """Whether an `If-Match` header names a version. A weak ETag names none: it may stand for several.

    Raises InvalidInput if the header is malformed.
    """
    if if_match.strip() == _ANY:
        return True
    if not _TAGS.fullmatch(if_match):
        raise InvalidInput(
            f"`If-Match` has {if_match[:100]!r}, which is no ETag. Send the ETag of the segments as it came, with "
            "its quotes.",
            param="If-Match",
        )
    return etag in re.findall(_TAG, if_match)
