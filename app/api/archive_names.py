"""The names of files in an archive: like those of single results, and safe on every system. Pure."""

import re
import unicodedata
from collections import Counter
from pathlib import PurePath

MAX_STEM_BYTES = 200  # in UTF-8; most file systems allow 255 for a name

# What Windows or Linux forbids in names, control characters, and those that reverse the order of letters.
_UNSAFE = re.compile('[<>:"/\\\\|?*\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]')
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # Windows: with any extension


class ArchiveNames:
    """Gives each file of an archive a name of its own. Case does not tell names apart."""

    def __init__(self, *reserved: str) -> None:
        self._taken = {_key(name) for name in reserved}
        self._numbers: Counter[str] = Counter()  # the last number of each name

    def unique(self, filename: str, fallback: str, extension: str) -> str:
        """A name for the result of a recording that is called `filename`; `fallback`: if that is empty."""
        stem = safe_stem(filename, fallback)
        name = f"{stem}.{extension}"
        first = _key(name)
        while _key(name) in self._taken:
            self._numbers[first] += 1
            name = f"{stem} ({self._numbers[first] + 1}).{extension}"
        self._taken.add(_key(name))
        return name


def safe_stem(filename: str, fallback: str) -> str:
    """The name of a file without folders and extension, and with `_` in place of what is unsafe."""
    stem = _UNSAFE.sub("_", PurePath(filename).stem)
    stem = stem.encode()[:MAX_STEM_BYTES].decode(errors="ignore").strip(" .")
    stem = stem or fallback
    return f"_{stem}" if _DEVICE.fullmatch(stem) else stem


def _key(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
