"""Numbers in headers, queries and forms."""

import re

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

# Python would also take `1_000`, which is a number nowhere else.
_DIGITS = re.compile(r"-?0*[1-9][0-9]*|0+")


def check_whole(value: object) -> object:
    """Refuse a text that is no whole number in digits."""
    if isinstance(value, str) and not _DIGITS.fullmatch(value.strip()):
        raise PydanticCustomError("whole_number", "must be a whole number, written in digits such as 1000")
    return value


def check_number(value: object) -> object:
    """Refuse a text with `_`. pydantic refuses everything else that is no number."""
    if isinstance(value, str) and "_" in value:
        raise PydanticCustomError("number", "must be a number, written in digits such as 0.5")
    return value


# After the limits of a type: they belong to the number.
WHOLE = BeforeValidator(check_whole)
NUMBER = BeforeValidator(check_number)
