"""Names of languages, as people and files write them."""

import pytest

from app.common.languages import LANGUAGES, language_code, names_in_files
from tests.cases import read_cases


@pytest.mark.parametrize(("value", "names"), read_cases("languages")["names"])
def test_files_name_languages_in_many_ways(value: str, names: list[str]) -> None:
    found = names_in_files(value)
    assert set(found) == set(names)
    assert found[0] == value.lower()


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_language_of_whisper_has_a_long_code(code: str) -> None:
    assert any(len(name) == 3 for name in names_in_files(code))


@pytest.mark.parametrize(("value", "near"), read_cases("languages")["nearest"])
def test_an_unknown_language_is_refused_with_the_nearest_code(value: str, near: str) -> None:
    with pytest.raises(ValueError, match="is not a language that Whisper knows") as refused:
        language_code(value)
    message = str(refused.value)
    assert (f"did you mean {near!r}?" in message) if near else ("did you mean" not in message)
    assert len(message) < 250
