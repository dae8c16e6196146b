"""Languages in the names of subtitles."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.common.languages import LANGUAGES
from app.watch.report import shown
from app.watch.sidecar import path_of, players_code, read_language, subtitles_beside


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("de", "de"), ("ger", "de"), ("deu", "de"), ("German", "de"), ("de-AT", "de"), ("DE", "de"),
        ("chi", "zh"), ("zho", "zh"), ("zh-Hans", "zh"), ("zh_TW", "zh"), ("cmn", "zh"), ("yue", "zh"),
        ("pob", None), ("pt-BR", "pt"), ("nb", "no"), ("nob", "no"), ("jav", "jv"), ("haw", "haw"),
        ("1080p", None), ("x264", None), ("", None), ("und", None), ("ga", None),
    ],
)  # fmt: skip
def test_languages_as_files_name_them(text: str, code: str | None) -> None:
    assert read_language(text) == code


def test_each_language_is_read_again() -> None:
    for language in LANGUAGES:
        name = path_of(Path("/films/A film. 2.mkv"), language, "srt").name
        [found] = subtitles_beside(Path("/films/A film. 2.mkv"), [name])
        assert found.language == players_code(language), language


@given(st.text(max_size=12))
def test_any_text_is_no_error(text: str) -> None:
    code = read_language(text)
    assert code is None or code in {players_code(language) for language in LANGUAGES}


@given(st.binary(min_size=1, max_size=40).filter(lambda name: b"/" not in name and b"\0" not in name))
def test_any_name_is_one_line(name: bytes) -> None:
    text = shown(Path("/" + name.decode("utf-8", "surrogateescape")))
    assert text.isprintable()
    text.encode()
