"""The subtitle beside a recording: its name as Jellyfin, Plex and Kodi read it, and its file.

It is written all of it or not at all, under a temporary name first.
"""

import hashlib
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import langcodes

from app.files import write_whole
from app.languages import LANGUAGES, language_code, language_name
from app.transcript.formats import FORMATS

_TEMPORARY = re.compile(r"\.whisperfleet-[0-9a-f]{16}\.tmp")

# Whisper's codes that players do not read. Cantonese is written in Chinese characters.
_PLAYERS_CODES = {"jw": "jv", "yue": "zh"}

# Ours that show text at a time, and those of other programs.
_FOREIGN_SUFFIXES = "dfxp idx mks sami smi ssa sub sup usf webvtt"
SUBTITLE_SUFFIXES = (FORMATS.keys() - {"json", "tsv"}) | set(_FOREIGN_SUFFIXES.split())
# Parts of a name that say what a subtitle is for. One of foreign parts only does not subtitle the rest.
_FLAGS = frozenset({"default", "sdh", "cc"})
_HEARING_IMPAIRED = "hi"  # and Hindi
_FOREIGN_PARTS = frozenset({"forced", "foreign"})


@dataclass(frozen=True, slots=True)
class Subtitle:
    """A subtitle that a recording has: where it is, and its language as in file names; None: unknown."""

    where: str
    language: str | None


def players_code(language: str) -> str:
    """The code of one of Whisper's languages in file names: ISO 639-1, or 639-2 if there is no other."""
    return _PLAYERS_CODES.get(language, language)


def language_title(language: str) -> str:
    """The English name of one of Whisper's languages, such as `German`."""
    return language_name(language).title()


def read_language(text: str) -> str | None:
    """The `players_code` of a language as files name it: `de`, `ger`, `deu`, `German`, `de-AT`, `zh_Hans`.

    None if it is none of Whisper's languages.
    """
    try:
        return players_code(language_code(text) or "")
    except ValueError:
        pass
    try:
        code = langcodes.standardize_tag(text, macro=True).partition("-")[0]
    except ValueError:
        return None
    code = {"jv": "jw", "nb": "no"}.get(code, code)
    return players_code(code) if code in LANGUAGES else None


def path_of(recording: Path, language: str, file_format: str) -> Path:
    """The path of a recording's subtitle: `/films/Film.mkv` in German as SRT is `/films/Film.de.srt`."""
    return recording.with_name(f"{recording.stem}.{players_code(language)}.{file_format}")


def subtitles_beside(
    recording: Path, names: Collection[str], suffixes: Collection[str] = SUBTITLE_SUFFIXES
) -> Iterator[Subtitle]:
    """The subtitles of a recording among the `names` of its folder's files.

    Without those of foreign parts, and without those of a recording whose name is longer:
    `Show.S01.de.srt` belongs to `Show.S01.mkv` rather than to `Show.mkv`, if both are there.
    """
    stem = recording.stem
    candidates = [name for name in names if name.startswith(f"{stem}.")]
    recordings = (Path(name).stem for name in candidates if not _is_subtitle(name, SUBTITLE_SUFFIXES))
    longer = tuple(f"{other}." for other in recordings if other != stem)
    for name in candidates:
        if not _is_subtitle(name, suffixes) or name.startswith(longer):
            continue
        parts = name[len(stem) + 1 :].lower().split(".")[:-1]
        if _FOREIGN_PARTS.intersection(parts):
            continue
        others = [part for part in parts if part not in _FLAGS]
        languages = [language for part in others if (language := read_language(part))]
        if len(languages) > 1 and languages[-1] == _HEARING_IMPAIRED:
            languages.pop()
        if languages or not others:
            yield Subtitle(name, languages[-1] if languages else None)


def temporary_path(target: Path) -> Path:
    """Where `target` is written at first: a hidden file with a short name, always the same one."""
    digest = hashlib.sha256(os.fsencode(target)).hexdigest()[:16]
    return target.with_name(f".whisperfleet-{digest}.tmp")


def is_temporary(name: str) -> bool:
    """Whether a file of this name is such a hidden file, perhaps left by a killed process."""
    return _TEMPORARY.fullmatch(name) is not None


def mark(path: Path) -> str:
    """What tells a file from a later version of it; blank if it is not there. Raises OSError."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return ""
    return f"{status.st_size}:{status.st_mtime_ns}"


def write(target: Path, content: bytes, recording: Path) -> str:
    """Write a subtitle, or replace it. Returns its `mark`. Raises OSError; no other file is left then.

    Who may read the recording may read the subtitle: it gets the recording's permissions and, where this
    process may set them, its owner. A file that is replaced keeps its own.
    """
    write_whole(target, content, temporary_path(target), _status(target) or _status(recording))
    return mark(target)


def move(source: Path, target: Path) -> bool:
    """Move a subtitle along with its recording. Returns False if there is none, or one at the target.

    Raises OSError.
    """
    if os.path.lexists(target) or not source.is_file():
        return False
    source.rename(target)
    return True


def _is_subtitle(name: str, suffixes: Collection[str]) -> bool:
    return name.rpartition(".")[2].lower() in suffixes


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
