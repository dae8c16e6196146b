"""The commands of README and docs/, as a reader would run them."""

import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.environments import python_with
from tests.e2e.running import DATA, SIMULATED, Server, environment
from tests.pages import PAGES, ROOT

SHELL = ("sh", "bash", "shell")
LANGUAGES = (*SHELL, "python")

# The first of these that matches counts, so a fence inside another block begins none.
_PARTS = re.compile(
    r"^(?P<heading>#{1,6} [^\n]+)$"
    r"|(?:^[ ]*<!-- not run: (?P<reason>[^\n]*) -->\n)?"
    r"^[ ]*```(?P<language>[^\n]*)\n(?P<text>.*?)^[ ]*```$",
    re.MULTILINE | re.DOTALL,
)

# How a page names what a program needs: "`pip install NAME`", "the `NAME` package".
_PACKAGES = re.compile(r"\bpip install ([\w-]+)|`([\w-]+)` (?:package|client)\b")

# A reader has not activated the environment of the tests.
_PATH = ":".join(folder for folder in os.environ["PATH"].split(":") if not folder.startswith(sys.prefix))

# What stands for a value that a reader would have: ids of two jobs that are done, and a key.
FIRST_JOB, SECOND_JOB, KEY = "9b2e…", "51c0…", "3f5c…"


@dataclass(frozen=True)
class Block:
    """A block of commands, where it stands, and why no test runs it.

    `packages`: those that its section names before it.
    """

    page: str
    heading: str
    line: int
    language: str
    text: str
    reason: str | None
    packages: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def arguments(self) -> list[str]:
        """Those of a program whose first line says how to call it: `python NAME.py IN OUT [OPTIONAL]`."""
        usage = re.match(r'"""python \S+\.py (.*)"""', self.text)
        words = shlex.split(usage[1]) if usage else []
        return [word for word in words if not word.startswith("[")]

    @property
    def needs_key(self) -> bool:
        """Whether all of its commands send a key."""
        commands = re.findall(r"\bcurl .*", self.text.replace("\\\n", " "))
        return KEY in self.text or (bool(commands) and all("$KEY" in command for command in commands))


def blocks(path: Path, languages: Collection[str] = LANGUAGES) -> list[Block]:
    """The blocks of a page that are commands or programs."""
    page = path.read_text(encoding="utf-8")
    found, heading, begin = [], "", 0
    for part in _PARTS.finditer(page):
        if part["heading"]:
            heading, begin = part["heading"].lstrip("# "), part.end()
        elif part["language"].strip() in languages:
            line = page.count("\n", 0, part.start("text"))
            text = textwrap.dedent(part["text"])
            name = path.relative_to(ROOT).as_posix()
            named = _PACKAGES.findall(page, begin, part.start())
            packages = tuple(dict.fromkeys(first or second for first, second in named))
            language = part["language"].strip()
            found.append(Block(name, heading, line, language, text, part["reason"], packages))
    return found


def all_blocks() -> list[Block]:
    """Those of all pages."""
    return [block for path in PAGES for block in blocks(path)]


def section(page: str, heading: str, languages: Collection[str] = LANGUAGES) -> list[Block]:
    """Those of one section."""
    return [block for block in blocks(ROOT / page, languages) if block.heading == heading]


class Reader:
    """Someone who follows a page from its beginning, with a service and files of their own.

    Commands that start workers of their own start simulated ones, which takes less time.
    """

    def __init__(self, folder: Path, files: Iterable[Path], server: Server, key: str = "") -> None:
        self.folder, self.server, self.key = folder, server, key
        for path in files:
            (folder / path.name).hardlink_to(path)
        (folder / ".venv").symlink_to(sys.prefix)
        (folder / "tests").mkdir()
        (folder / "tests" / "data").symlink_to(DATA)
        # An answer that is an error ends the block.
        (folder / ".curlrc").write_text("silent\nshow-error\nfail-with-body\n")
        self._jobs: list[str] = []

    def begin_section(self) -> None:
        """Forget the jobs of the section before, which may have deleted them. The files stay."""
        self._jobs = []

    def run(self, block: Block, timeout_s: float = 60) -> str:
        """Run a block as it is written. Returns what it prints; fails if a command of it does."""
        if block.language in SHELL:
            command = ["bash", "-euo", "pipefail", "-c", self._filled(block.text)]
        else:
            command = [str(self._python(block)), "-c", self._filled(block.text), *block.arguments]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment(self.folder, **self._variables(block)),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"{block.name}\n{done.stdout}\n{done.stderr}"
        assert '"error":{' not in done.stdout, block.name
        return done.stdout

    def environment_of(self, block: Block) -> Path:
        """The folder of the environment with what the page says, which is made unless it is there."""
        return self.folder / ".environments" / "-".join(["with", *sorted(block.packages)])

    def _python(self, block: Block) -> Path:
        folder = self.environment_of(block)
        return folder / "bin" / "python" if folder.exists() else python_with(block.packages, folder)

    def _filled(self, text: str) -> str:
        """The text with the address of the server, and values instead of what stands for them."""
        text = text.replace("localhost:8000", f"127.0.0.1:{self.server.port}").replace(KEY, self.key)
        for number, place in enumerate((FIRST_JOB, SECOND_JOB)):
            if place in text:
                text = text.replace(place, self.job(number))
        return text

    def _variables(self, block: Block) -> dict[str, Any]:
        job = {"JOB": f"/v1/jobs/{self.job(0)}"} if "$JOB" in block.text else {}
        own = {"HOME": self.folder, "PATH": _PATH, "KEY": self.key or "none"}
        return {**SIMULATED, "WHISPER_CPU_WORKERS": 1, **own, **job}

    def job(self, number: int) -> str:
        """The id of a job of this reader that is done."""
        while len(self._jobs) <= number:
            recording = DATA / f"short0{len(self._jobs)}.flac"
            self._jobs.append(self.server.finished(self.server.submit(recording)["id"])["id"])
        return self._jobs[number]
