"""The result of one check."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from app.common.errors import InvalidSetting
from app.common.known_errors import GUIDE, diagnose, last_line

UNKNOWN = "This error is not known. Please report it with the complete output of the doctor."


class Severity(StrEnum):
    """How serious a finding is. The value is printed."""

    OK = "ok"
    WARN = "warn"  # works, but perhaps not as intended
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    title: str
    found: str
    severity: Severity = Severity.OK
    remedy: str = ""
    invalid_setting: bool = False  # the service would not start


ReportFinding = Callable[[Finding], None]  # gets each finding as soon as it is known


def ok(title: str, found: str) -> Finding:
    return Finding(title, found)


def warn(title: str, found: str, remedy: str, anchor: str | None = None) -> Finding:
    """A finding that the user should know of. `anchor` names a section of the guide."""
    return Finding(title, found, Severity.WARN, _with_anchor(remedy, anchor))


def fail(title: str, found: str, remedy: str, anchor: str | None = None) -> Finding:
    """A check that failed. `anchor` names a section of the guide."""
    return Finding(title, found, Severity.FAIL, _with_anchor(remedy, anchor))


def fail_with(title: str, error: BaseException) -> Finding:
    """A check that raised `error`, with the advice for it if the error is known."""
    message = last_line(error)
    known = diagnose(message)
    return Finding(title, message, Severity.FAIL, known.advice if known else UNKNOWN)


def fail_setting(title: str, error: InvalidSetting) -> Finding:
    """A setting with which the service does not start. The error's message says what to do."""
    known = diagnose(error.message)
    remedy = f"See {GUIDE}#{known.anchor}." if known else "docs/settings.md lists the settings."
    return Finding(title, error.message, Severity.FAIL, remedy, invalid_setting=True)


def _with_anchor(remedy: str, anchor: str | None) -> str:
    return f"{remedy} ({GUIDE}#{anchor})" if anchor else remedy
