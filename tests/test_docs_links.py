"""Links between the pages, and from the code to them, lead somewhere."""

import re
from pathlib import Path

import pytest

from tests.pages import PAGES, ROOT, anchors, links, prose
from tests.tables import MARKED

RESULTS = ROOT / "bench/RESULTS.md"
CHANGES = ROOT / "CHANGELOG.md"
ALL = [*PAGES, RESULTS, CHANGES]
SOURCES = [
    path
    for folder in ("app", "workers", "bench", "docker", "tests")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".js", ".html", ".yml", ".svg") or path.name in ("Dockerfile", "check")
] + [ROOT / "Makefile", ROOT / "docker-compose.yml", ROOT / "pyproject.toml"]

_IN_CODE = re.compile(r"\bdocs/[\w-]+\.md(?:#[\w-]+)?")


def fault(path: Path, target: str) -> str | None:
    """What is wrong with a link from a page."""
    name, _, anchor = target.partition("#")
    found = (path.parent / name).resolve() if name else path
    if not found.is_relative_to(ROOT):
        return f"{target} leaves the repository"
    if not found.exists():
        return f"there is no {target}"
    if anchor and anchor not in anchors(found):
        return f"{name or path.name} has no #{anchor}"
    return None


@pytest.mark.parametrize(
    ("target", "wrong"),
    [
        ("security.md#logs", None),
        ("#keys", None),
        ("#no-such-heading", "http.md has no #no-such-heading"),
        ("security.md#log", "security.md has no #log"),
        ("nowhere.md", "there is no nowhere.md"),
        ("../../elsewhere.md", "../../elsewhere.md leaves the repository"),
    ],
)
def test_a_dead_link_is_found(target: str, wrong: str | None) -> None:
    assert fault(ROOT / "docs/http.md", target) == wrong


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    assert [found for target in links(path) if (found := fault(path, target))] == []


def test_every_page_is_reached_from_readme() -> None:
    reached, left = {ROOT / "README.md"}, [ROOT / "README.md"]
    while left:
        page = left.pop()
        named = {(page.parent / target.partition("#")[0]).resolve() for target in links(page)}
        new = {path for path in named if path.suffix == ".md" and path.exists()} - reached
        reached |= new
        left += new
    assert {path for path in ALL if path not in reached} == set()


def test_the_code_names_pages_and_sections_that_exist() -> None:
    faults = []
    for source in SOURCES:
        if source == Path(__file__) or "vendor" in source.parts:
            continue
        for target in _IN_CODE.findall(source.read_text(encoding="utf-8")):
            if wrong := fault(ROOT / "README.md", target):
                faults.append(f"{source.relative_to(ROOT)}: {wrong}")
    assert faults == []


def test_pictures_are_used() -> None:
    used = {(path.parent / target).resolve() for path in ALL for target in links(path)}
    assert {path for path in (ROOT / "docs").rglob("*") if path.suffix in (".png", ".svg")} <= used


FIGURE = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w.]*\d)")


@pytest.mark.parametrize("page", ["README.md", "docs/scale.md"])
def test_every_figure_is_one_of_the_results(page: str) -> None:
    text = prose(ROOT / page)
    if page == "README.md":
        text = text.partition("## Measured\n")[2].partition("\n## ")[0]
    text = MARKED.sub("", text)  # these have the figures of bench/costs.json
    figures = FIGURE.findall(text)
    assert len(figures) > 8
    assert set(figures) - set(FIGURE.findall(RESULTS.read_text(encoding="utf-8"))) == set()


def test_anchors_are_those_of_github(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b_b` [c](c.md)\n## Find jobs, and more\n## 412 or 428\n```sh\n# no heading\n```\n## A b_b c\n"
    )
    assert anchors(page) == {"a-b_b-c", "find-jobs-and-more", "412-or-428", "a-b_b-c-1"}
