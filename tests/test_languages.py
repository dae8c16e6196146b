"""Names of languages, as people and files write them."""

import pytest

from app.languages import LANGUAGES, names_in_files


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("de", {"de", "ger", "deu", "german"}),
        ("German", {"german", "de", "ger", "deu"}),
        ("deu", {"deu", "de", "ger", "german"}),
        ("pt-BR", {"pt-br", "pt", "por", "portuguese"}),
        ("zh", {"zh", "chi", "zho", "chinese"}),
        ("jw", {"jw", "jav", "javanese"}),
        ("tlh", {"tlh"}),  # Klingon: Whisper does not know it, and a film may have it
        ("no language", {"no language"}),
        ("../etc", {"../etc"}),
        ("", {""}),
    ],
)
def test_files_name_languages_in_many_ways(value: str, names: set[str]) -> None:
    found = names_in_files(value)
    assert set(found) == names
    assert found[0] == value.lower()


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_language_of_whisper_has_a_long_code(code: str) -> None:
    assert any(len(name) == 3 for name in names_in_files(code))
