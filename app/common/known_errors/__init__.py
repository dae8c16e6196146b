"""Known error messages of CUDA, its driver, the libraries and the service: their meaning and remedy.

Each entry of `errors.toml` has a section in docs/trouble.md with more detail.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from workers import causes

GUIDE = "docs/trouble.md"

_FILE = Path(__file__).with_name("errors.toml")
_KINDS = {"anchor": str, "meaning": str, "remedy": str, "cause": str, "patterns": list}


@dataclass(frozen=True, slots=True)
class KnownError:
    """A kind of message, what it means, and what to do about it."""

    pattern: re.Pattern[str]  # searched anywhere in the message
    meaning: str
    remedy: str
    anchor: str  # of its section in the guide

    @property
    def advice(self) -> str:
        """Meaning, remedy and the link to the guide, in one line."""
        return f"{self.meaning} {self.remedy} ({GUIDE}#{self.anchor})"


@cache
def known_errors() -> tuple[KnownError, ...]:
    """All entries. The first one that matches counts."""
    return read_errors(_FILE)


def read_errors(path: Path) -> tuple[KnownError, ...]:
    """The entries of a file. Raises ValueError with the file, the entry and the word if one is wrong."""
    try:
        listed = tomllib.loads(path.read_text("utf-8"))["errors"]
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None
    return tuple(_known_error(path.name, entry) for entry in listed)


def _known_error(file: str, entry: dict[str, Any]) -> KnownError:
    where = f"{file}: {entry.get('anchor', entry)}"
    for key, value in entry.items():
        if not isinstance(value, _KINDS.get(key, ())):
            raise ValueError(f"{where}: {key} = {value!r} is nothing that an entry has")
    try:
        cause = [getattr(causes, entry["cause"])] if "cause" in entry else []
        pattern = re.compile("|".join([*cause, *entry.get("patterns", [])]), re.IGNORECASE)
        known = KnownError(pattern, entry["meaning"], entry["remedy"], entry["anchor"])
    except (AttributeError, KeyError, TypeError, re.error) as error:
        raise ValueError(f"{where}: {error}") from None
    if not pattern.pattern:
        raise ValueError(f"{where} has neither a cause nor patterns")
    return known


def diagnose(message: str) -> KnownError | None:
    """The first entry that matches a message; None for an unknown message."""
    return next((known for known in known_errors() if known.pattern.search(message)), None)


def explain(error: BaseException | str) -> str:
    """The error's message in one line, followed by the advice if the error is known."""
    message = last_line(error)
    known = diagnose(message)
    if known is None or GUIDE in message:  # it has been explained where it was raised
        return message
    return f"{message}. {known.advice}"


def last_line(error: BaseException | str) -> str:
    """The last line of an error or a traceback, which holds its message.

    Drops the names of common exceptions, which add no information.
    """
    text = error if isinstance(error, str) else str(error) or repr(error)
    lines = [line.strip() for line in text.splitlines() if line.strip(' \t"')]
    line = lines[-1] if lines else text
    return re.sub(r"^(RuntimeError|ValueError|OSError|ImportError): ", "", line).rstrip(".")
