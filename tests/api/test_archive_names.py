"""The names of files in an archive."""

import pytest

from app.api.archive import MAX_STEM_BYTES, ArchiveNames, safe_stem


@pytest.mark.parametrize(
    ("filename", "stem"),
    [
        ("talk.mp3", "talk"),
        ("Füße 1.tar.mkv", "Füße 1.tar"),
        ("", "id"),
        ("../../etc/passwd", "passwd"),
        (r"..\..\windows\win.ini", "_.._windows_win"),
        ("/absolute.wav", "absolute"),
        ("C:evil.wav", "C_evil"),
        ('a<b>c:d"e|f?g*h.wav', "a_b_c_d_e_f_g_h"),
        (".hidden.wav", "hidden"),
        ("...", "id"),
        (" . .wav", "id"),
        ("a\x00b\nc\x7f\x9b.wav", "a_b_c__"),
        ("photo\u202egpj.exe", "photo_gpj"),
        ("CON.wav", "_CON"),
        ("com1.old.wav", "_com1.old"),
        ("console.wav", "console"),
        ("日本語。.mp3", "日本語。"),
        ("lone\ud800.wav", "lone_"),
    ],
)
def test_safe_stems(filename: str, stem: str) -> None:
    assert safe_stem(filename, "id") == stem


def test_long_names_are_cut_between_letters() -> None:
    assert safe_stem("é" * 300 + ".wav", "id") == "é" * (MAX_STEM_BYTES // 2)
    assert safe_stem("a" + "é" * 300 + ".wav", "id") == "a" + "é" * (MAX_STEM_BYTES // 2 - 1)


def test_each_file_has_a_name_of_its_own() -> None:
    names = ArchiveNames("errors.txt")
    filenames = ("talk.mp3", "talk.wav", "Talk.mp3", "talk (2).mp3", "é.wav", "e\u0301.wav", "talk.mp3")
    assert [names.unique(filename, "id", "srt").removesuffix(".srt") for filename in filenames] == [
        "talk", "talk (2)", "Talk (3)", "talk (2) (2)", "é", "e\u0301 (2)", "talk (4)"
    ]  # fmt: skip
    assert names.unique("errors.mp3", "id", "txt") == "errors (2).txt"
    assert names.unique("errors.mp3", "id", "srt") == "errors.srt"
