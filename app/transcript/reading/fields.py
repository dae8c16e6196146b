"""The values in a JSON document, checked. Pure.

A value that is only untidy counts as absent: null, NaN, infinity. A value of another kind raises
`InvalidInput` with its place in the document, such as `segments[3].start`.
"""

import json
import math
import re
from typing import Any

from app.common.errors import InvalidInput
from app.transcript.text.speaker_text import shown_name
from workers.messages import SAMPLE_RATE

Object = dict[str, Any]

_LONGEST_S = 10_000 * 3600  # a later time is a mistake
_SHOWN_CHARS = 40  # of a value, in messages
_SURROGATE = re.compile("[\ud800-\udfff]")  # half a character, which no file can hold
_REMEDY = "Give a transcript in JSON, such as response_format=verbose_json or --format json writes."


def not_a_transcript(what: str) -> InvalidInput:
    return InvalidInput(f"{what}. {_REMEDY}")


def parse_json(content: bytes) -> Any:
    """The document, in UTF-8, UTF-16 or UTF-32, with or without a byte order mark."""
    if not content.strip():
        raise not_a_transcript("the file is empty")
    if b"-->" in content[:2000] and content.lstrip()[:1] not in (b"{", b"["):
        raise not_a_transcript("this is a subtitle file, not a transcript")
    try:
        return json.loads(content)
    except RecursionError:
        raise not_a_transcript("this JSON is too deeply nested") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise not_a_transcript(f"this is not JSON, or only a part of it ({where})") from None
    except ValueError:  # bytes that are no text, a number with thousands of digits
        raise not_a_transcript("this is not JSON") from None


def entries(parent: Object, name: str, place: str = "") -> list[Any] | None:
    """The array of that name; None if it is absent."""
    value = parent.get(name)
    if value is not None and not isinstance(value, list):
        raise _wrong(f"{place}{name}", value, "a list")
    return value


def as_object(value: object, place: str) -> Object:
    if not isinstance(value, dict):
        raise _wrong(place, value, "an object")
    return value


def text_field(parent: Object, name: str, place: str = "") -> str:
    """The text; empty if it is absent."""
    value = parent.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _wrong(f"{place}{name}", value, "a text")
    return _SURROGATE.sub("\ufffd", value)


def name_field(parent: Object, name: str) -> str | None:
    """The name or number of a speaker; None if it is absent, or something else."""
    value = parent.get(name)
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    return shown_name(_SURROGATE.sub("\ufffd", str(value))) or None


def samples_field(parent: Object, name: str, place: str = "") -> int | None:
    """A time in seconds as samples; None if it is absent. A time before the recording becomes 0."""
    value = number_field(parent, name, place)
    if value is None:
        return None
    if value > _LONGEST_S:
        raise _wrong(f"{place}{name}", parent[name], "a time in seconds")
    return round(max(value, 0) * SAMPLE_RATE)


def number_field(parent: Object, name: str, place: str = "") -> float | None:
    """The number; None if it is absent. Some APIs write numbers in quotes."""
    value = parent.get(name)
    if value is None:
        return None
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        number = float(value)
    except (ValueError, OverflowError):
        raise _wrong(f"{place}{name}", value, "a number") from None
    return number if math.isfinite(number) else None


def _wrong(place: str, value: object, expected: str) -> InvalidInput:
    if isinstance(value, dict | list):
        shown = "an object" if isinstance(value, dict) else "a list"
    else:
        shown = json.dumps(value)
    if len(shown) > _SHOWN_CHARS:
        shown = f"{shown[:_SHOWN_CHARS]}…"
    return not_a_transcript(f"{place} is {shown}, not {expected}")
