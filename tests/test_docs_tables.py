"""The tables of the documentation are those that the code makes."""

import pytest

from app.common.options import Options
from app.settings import Settings
from app.transcript.formats import FORMATS
from tests.pages import ROOT
from tests.tables import MAIN_SETTINGS, MARKED, TABLE_PAGES, TABLES, TASKS, rewritten, table

TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in TABLE_PAGES}


@pytest.mark.parametrize("page", TEXTS)
def test_the_tables_are_those_of_the_code(page: str) -> None:
    assert rewritten(TEXTS[page]) == TEXTS[page], "run `python -m tests.tables`"


def test_each_table_is_in_a_page_and_each_mark_has_an_end() -> None:
    found = [match["name"] for text in TEXTS.values() for match in MARKED.finditer(text)]
    assert set(found) == set(TABLES)
    marks = sum(
        text.count(f"\n{mark}") for text in TEXTS.values() for mark in ("<!-- table: ", "<!-- end of")
    )
    assert marks == 2 * len(found)


def test_everything_that_can_be_set_is_described() -> None:
    settings = "\n".join(TABLES["settings"]())
    for name, field in Settings.model_fields.items():
        assert f"| `WHISPER_{name.upper()}` | " in settings
        assert field.description
        assert field.description.endswith("."), name
        has_unit = name.endswith(("_s", "_mb"))
        assert not has_unit or "(s)" in field.description or "(MB" in field.description, name
    options = "\n".join([*TABLES["options"](), *TABLES["file-options"]()])
    assert all(f"| `{name}` | " in options for name in Options.model_fields)
    formats = "\n".join(TABLES["formats"]())
    assert all(f"| `{name}` | " in formats for name in FORMATS)


def test_each_task_of_settings_begins_with_one() -> None:
    assert next(iter(TASKS)) == next(iter(Settings.model_fields))
    assert TASKS.keys() <= Settings.model_fields.keys()


def test_readme_lists_the_main_settings_alone() -> None:
    assert len(list(TABLES["main-settings"]())) == 2 + len(MAIN_SETTINGS) <= 12


def test_cells_cannot_break_a_table() -> None:
    assert list(table(["a", ""], [["x|y", "z"]])) == ["| a |  |", "| --- | --- |", r"| x\|y | z |"]


def test_an_unknown_table_is_an_error_and_a_changed_one_is_replaced() -> None:
    page = "before\n<!-- table: formats -->\nold\n<!-- end of table -->\nafter\n"
    made = "\n".join(TABLES["formats"]())
    assert rewritten(page) == page.replace("old", made)
    with pytest.raises(KeyError):
        rewritten(page.replace("formats", "nothing"))
