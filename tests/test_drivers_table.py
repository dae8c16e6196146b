"""The table of drivers in the documentation says what the doctor checks."""

import re
from pathlib import Path

from app.commands.doctor import gpus

INSTALL = (Path(__file__).parents[1] / "docs" / "install.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (?P<gpus>[^|]+) \| (?P<capabilities>[^|]+) \| (?P<driver>none|\d+) \|", re.MULTILINE)


def capability(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


def test_each_row_is_what_the_doctor_asks_for() -> None:
    table = INSTALL.partition("### Drivers")[2].partition("\n## ")[0]
    rows = list(ROW.finditer(table))
    assert len(rows) == 6
    for row in rows:
        found = [capability(number) for number in re.findall(r"\d+\.\d+", row["capabilities"])]
        if row["driver"] == "none":
            assert found == [gpus.OLDEST_CAPABILITY]
            continue
        assert {gpus.min_driver(each) for each in found} == {int(row["driver"])}, row["gpus"]
        is_compiled = all(each >= gpus.FIRST_COMPILED_CAPABILITY for each in found)
        assert is_compiled == (int(row["driver"]) > gpus.MIN_DRIVERS[0][1])
