"""What models take, computed from their dimensions."""

import re
from pathlib import Path

from app.engines.model_files import REPOSITORIES, abilities_of
from bench.model_sizes import models_table

GUIDE = Path(__file__).parents[2] / "docs" / "models.md"


def test_the_guide_has_the_table() -> None:
    page = GUIDE.read_text(encoding="utf-8")
    [table] = re.findall(r"<!-- table: models -->\n(.*?)<!-- end of table -->", page, re.DOTALL)
    assert table.splitlines() == list(models_table())
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    named = {name: row for row in rows for name in re.findall("`(.+?)`", row[0])}
    assert {name: row[1] for name, row in named.items()} == REPOSITORIES
    assert all((row[-1] == "yes") == abilities_of(name, None).translates for name, row in named.items())
