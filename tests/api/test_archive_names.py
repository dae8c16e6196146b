"""The names of files in an archive."""

import pytest

from app.api.jobs.archive import ArchiveNames
from app.common.files import MAX_STEM_BYTES, safe_stem
from tests.cases import read_cases


@pytest.mark.parametrize(("filename", "stem"), [*read_cases("names")["stems"], ("lone\ud800.wav", "lone_")])
def test_safe_stems(filename: str, stem: str) -> None:
    assert safe_stem(filename, "id") == stem


def test_long_names_are_cut_between_letters() -> None:
    assert safe_stem("é" * 300 + ".wav", "id") == "é" * (MAX_STEM_BYTES // 2)
    assert safe_stem("a" + "é" * 300 + ".wav", "id") == "a" + "é" * (MAX_STEM_BYTES // 2 - 1)


def test_each_file_has_a_name_of_its_own() -> None:
    names = ArchiveNames("errors.txt")
    filenames = ("talk.mp3", "talk.wav", "Talk.mp3", "talk (2).mp3", "é.wav", "e\u0301.wav", "talk.mp3")
    stems = [safe_stem(filename, "id") for filename in filenames]
    assert [names.unique(stem, "srt").removesuffix(".srt") for stem in stems] == [
        "talk", "talk (2)", "Talk (3)", "talk (2) (2)", "é", "e\u0301 (2)", "talk (4)"
    ]  # fmt: skip
    assert names.unique("errors", "txt") == "errors (2).txt"
    assert names.unique("errors", "srt") == "errors.srt"
