"""The pages of the documentation: their text, headings and links."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_BLOCK = re.compile(r"^[ ]*```.*?^[ ]*```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]+`")
_LINK = re.compile(r"\]\(([^()\s]+)\)|<img [^>]*src=\"([^\"]+)\"")


def prose(path: Path) -> str:
    """A page without its blocks of code."""
    return _BLOCK.sub("", path.read_text(encoding="utf-8"))


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def anchors(path: Path) -> set[str]:
    """The anchors of a page: those of its headings, with a number if there are several of a name."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} (.+)$", prose(path), re.MULTILINE):
        name = slug(heading)
        numbered = (f"{name}-{number}" for number in range(1, 100))
        found.add(name if name not in found else next(other for other in numbered if other not in found))
    return found


def links(path: Path) -> Iterator[str]:
    """The targets of a page's links and pictures, but those on other sites."""
    for match in _LINK.finditer(_CODE.sub("", prose(path))):
        target = match[1] or match[2]
        if not re.match(r"[a-z]+:", target):
            yield target
