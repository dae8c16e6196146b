"""Names of languages, as people and files write them."""

import pytest

from app.languages import LANGUAGES, names_in_files
from tests.cases import read_cases


@pytest.mark.parametrize(("value", "names"), read_cases("languages")["names"])
def test_files_name_languages_in_many_ways(value: str, names: list[str]) -> None:
    found = names_in_files(value)
    assert set(found) == set(names)
    assert found[0] == value.lower()


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_language_of_whisper_has_a_long_code(code: str) -> None:
    assert any(len(name) == 3 for name in names_in_files(code))
