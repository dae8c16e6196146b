"""The output of `whisperfleet watch`: a line for each recording, and notices of what is wrong around them."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path


class Report:
    """Lines about recordings go to standard output, notices to standard error."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def done(self, recording: Path, sidecar: Path, details: str) -> None:
        """A recording has its subtitle."""
        self._line("done", recording, f"-> {shown(Path(sidecar.name))} ({details})")

    def warn(self, recording: Path, messages: Iterable[str]) -> None:
        """Something is wrong with a recording, which is transcribed all the same."""
        for message in messages:
            self._line("warning", recording, f"({message})")

    def skipped(self, recording: Path, reason: str) -> None:
        """A rule excludes a recording."""
        self._line("skipped", recording, f"({reason})")

    def failed(self, recording: Path, message: str) -> None:
        """A recording cannot be transcribed."""
        self._line("failed", recording, f"({message} It is tried again when the file changes.)")

    def moved(self, recording: Path, sidecar: Path) -> None:
        """A recording that was done has another name, and so has its subtitle."""
        self._line("moved", recording, f"-> {shown(Path(sidecar.name))} (the recording has a new name)")

    def deleted(self, recording: Path) -> None:
        """A recording was deleted before it was done."""
        self._line("deleted", recording, "(before it was done; its job is cancelled)")

    def say(self, notice: str) -> None:
        """Print a notice."""
        print(f"whisperfleet: {notice}", file=sys.stderr, flush=True)

    def say_once(self, subject: str, notice: str) -> None:
        """Print a notice about a subject, unless it is the one about it already."""
        if subject not in self._said:
            self._said.add(subject)
            self.say(notice)

    def solved(self, subject: str) -> None:
        """Let the next notice about a subject be printed again."""
        self._said.discard(subject)

    def _line(self, what: str, recording: Path, rest: str) -> None:
        print(f"{what:8}{shown(recording)} {' '.join(rest.split())}", flush=True)


def shown(path: Path) -> str:
    """A path on one line, whatever its bytes are: control characters and invalid UTF-8 are escaped."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
