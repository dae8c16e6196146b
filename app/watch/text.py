"""Lines for people: paths and times in them."""

import os
from pathlib import Path


def shown(path: Path) -> str:
    """A path on one line, whatever its bytes are: control characters and invalid UTF-8 are escaped."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def clock(seconds: float) -> str:
    """A duration as `1:02:03`, or `2:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
