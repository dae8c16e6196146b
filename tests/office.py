"""The machine's LibreOffice, which opens documents."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REQUIRED = os.environ.get("REQUIRE_OFFICE") == "1"
MISSING = "there is no LibreOffice. Install it (Debian: `apt-get install libreoffice-writer-nogui`)"


def as_text(document: Path) -> list[str]:
    """The paragraphs that it finds in a document. Skips the test without it, or fails if it is required."""
    program = shutil.which("soffice")
    if program is None:
        (pytest.fail if REQUIRED else pytest.skip)(MISSING)
    profile = f"-env:UserInstallation={(document.parent / 'profile').as_uri()}"
    convert = [
        program,
        profile,
        "--headless",
        "--convert-to",
        "txt:Text (encoded):UTF8",
        "--outdir",
        document.parent,
    ]
    subprocess.run([*convert, document], check=True, capture_output=True, timeout=120)
    return document.with_suffix(".txt").read_text("utf-8-sig").splitlines()
