"""The character tables and language codes of EBU-STL (EBU Tech 3264, appendices 2 and 3)."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ttconv.stl import iso6937

from app.transcript.formats.narrow import CharacterSet

_ASCII = range(0x20, 0x7F)
_UPPER = range(0xA0, 0x100)  # the bytes from 7F to 9F control the picture
_ACCENTS = range(0xC1, 0xD0)  # of ISO 6937: each stands before its letter
_UNKNOWN = "\ufffd"


@dataclass(frozen=True, slots=True)
class CharacterTable(CharacterSet):
    """One of the tables. A file uses one table for all its text."""

    number: str  # as the file names it
    codes: Mapping[str, bytes]  # of the characters


def _table(number: str, name: str, codes: Mapping[str, bytes]) -> CharacterTable:
    return CharacterTable(f"EBU-STL's {name} table", codes.keys(), number, codes)


@cache
def character_tables() -> tuple[CharacterTable, ...]:
    """All tables."""
    return (
        _table("00", "Latin", _latin()),
        *(
            _table(f"{number:02}", name, _iso_8859(part))
            for number, (name, part) in enumerate(
                [("Cyrillic", 5), ("Arabic", 6), ("Greek", 7), ("Hebrew", 8)], start=1
            )
        ),
    )


def _latin() -> dict[str, bytes]:
    """ISO 6937: a byte for each character, and two for a letter with an accent."""
    known: dict[str, bytes] = {}
    single = [bytes([byte]) for byte in (*_ASCII, *_UPPER) if byte not in _ACCENTS and byte != 0xA4]
    # An accent alone would be one on a space, which readers drop at the end of a line.
    accented = (bytes([accent, letter]) for accent in _ACCENTS for letter in _ASCII[1:])
    for code in [*single, *accented]:
        char = iso6937.decode(code, "replace")[0]
        if char != _UNKNOWN:
            known[char] = code  # ģ has two codes; the last, with a cedilla, is the usual one
    return {char: code for char, code in known.items() if not char.isspace()} | {" ": b" "}


def _iso_8859(part: int) -> dict[str, bytes]:
    known: dict[str, bytes] = {}
    for byte in (*_ASCII, *_UPPER):
        char = bytes([byte]).decode(f"iso8859_{part}", "replace")
        if char != _UNKNOWN:
            known[char] = bytes([byte])
    return known


_LANGUAGES: dict[str, int] = tomllib.loads(Path(__file__).with_name("stl_languages.toml").read_text("utf-8"))


def language_number(code: str) -> str:
    """The number of a language in hexadecimal; 00, unknown, if it has none."""
    return f"{_LANGUAGES.get(code, 0):02X}"
