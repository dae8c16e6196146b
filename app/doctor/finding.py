"""What a check came to."""

from dataclasses import dataclass
from enum import StrEnum

from app.errors import InvalidSetting
from app.known_errors import GUIDE, diagnose, last_line

UNKNOWN = "Not a known trouble: please report it, with all that the doctor says."


class Severity(StrEnum):
    """How grave a finding is, as it is printed."""

    OK = "ok"
    WARN = "warn"  # works, though perhaps not as meant
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    title: str
    found: str
    status: Severity = Severity.OK
    cure: str = ""
    senseless: bool = False  # a setting makes no sense: the service would not start


def ok(title: str, found: str) -> Finding:
    """All is well."""
    return Finding(title, found)


def warn(title: str, found: str, cure: str, anchor: str | None = None) -> Finding:
    """Something that the user should know of. `anchor` names a section of the guide."""
    return Finding(title, found, Severity.WARN, _with_anchor(cure, anchor))


def fail(title: str, found: str, cure: str, anchor: str | None = None) -> Finding:
    """Something that will not work. `anchor` names a section of the guide."""
    return Finding(title, found, Severity.FAIL, _with_anchor(cure, anchor))


def failed_with(title: str, error: BaseException) -> Finding:
    """What an exception says, with its cure if it is known."""
    message = last_line(error)
    trouble = diagnose(message)
    return Finding(title, message, Severity.FAIL, trouble.advice if trouble else UNKNOWN)


def invalid_setting(title: str, error: InvalidSetting) -> Finding:
    """What ends the service's start. Its message says what to do; the guide may say more."""
    trouble = diagnose(error.message)
    cure = f"See {GUIDE}#{trouble.anchor}." if trouble else "The README lists the settings."
    return Finding(title, error.message, Severity.FAIL, cure, senseless=True)


def _with_anchor(cure: str, anchor: str | None) -> str:
    return f"{cure} ({GUIDE}#{anchor})" if anchor else cure
