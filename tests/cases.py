"""Cases of tests that are tables of words, texts or addresses: one file for each subject."""

import tomllib
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "data" / "tables"


def read_cases(subject: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{subject}.toml").read_text(encoding="utf-8"))
