"""The changelog has the form of Keep a Changelog and knows the present version."""

import re
import tomllib
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def releases() -> list[tuple[str, str, str]]:
    """Name, date and text of each section, in the file's order; the first has no date."""
    parts = re.split(r"^## \[([^]]+)\](?: - (\S+))?$", CHANGELOG, flags=re.MULTILINE)[1:]
    return list(zip(parts[0::3], (when or "" for when in parts[1::3]), parts[2::3], strict=True))


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def test_releases_follow_each_other() -> None:
    (first, undated, _), *dated = releases()
    assert (first, undated) == ("Unreleased", "")
    assert [line for line in CHANGELOG.splitlines() if line.startswith("## ")][1:] == [
        f"## [{name}] - {when}" for name, when, _ in dated
    ]
    assert [numbers(name) for name, _, _ in dated] == sorted(
        (numbers(name) for name, _, _ in dated), reverse=True
    )
    assert all(date.fromisoformat(when) <= date.today() for _, when, _ in dated)


def test_changes_are_of_known_kinds_and_not_empty() -> None:
    for name, _, text in releases():
        parts = re.split(r"^### (.+)$", text, flags=re.MULTILINE)[1:]
        kinds = parts[0::2]
        assert kinds == [kind for kind in KINDS if kind in kinds], f"{name}: kinds are in the usual order"
        assert all(re.search(r"^- ", part, re.MULTILINE) for part in parts[1::2]), f"{name}: a kind is empty"


def test_the_present_version_is_released_or_about_to_be() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    released = [numbers(name) for name, _, _ in releases()[1:]]
    assert not released or numbers(version) >= released[0]
