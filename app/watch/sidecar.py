"""The subtitle beside a recording: its name as Jellyfin, Plex and Kodi read it, and its file.

It is written all of it or not at all, under a temporary name first. What this program has written is known by
its content: a subtitle of somebody else is never replaced.
"""

import hashlib
import os
import re
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from app.common.files import exchange, rename_new, write_part
from app.common.languages import code_in_files, language_name
from app.transcript.formats import FORMATS

_TEMPORARY = re.compile(r"\.whisperfleet-[0-9a-f]{16}\.tmp")

# Whisper's codes that players do not read. Cantonese is written in Chinese characters.
_PLAYERS_CODES = {"jw": "jv", "yue": "zh"}

# Ours that show text at a time, and those of other programs.
_FOREIGN_SUFFIXES = "dfxp idx mks sami smi ssa sub sup usf webvtt"
SUBTITLE_SUFFIXES = (FORMATS.keys() - {"json", "tsv", "docx", "md"}) | set(_FOREIGN_SUFFIXES.split())
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
    code = code_in_files(text)
    return None if code is None else players_code(code)


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


def digest_of(content: bytes) -> str:
    """What tells the content of a subtitle from any other."""
    return hashlib.sha256(content).hexdigest()


NOTHING = digest_of(b"")


def digest(path: Path) -> str | None:
    """The `digest_of` a file's content. None if no file is there that can be read. Raises OSError."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, PermissionError):
        return None


def claim(target: Path, own: Collection[str]) -> str | None:
    """The digest of the subtitle that may be replaced; that of NOTHING if none is there.

    None if there is one of somebody else: its digest is not among `own`. Raises OSError.
    """
    if not os.path.lexists(target):
        return NOTHING
    found = digest(target)
    if found not in own:
        return None
    if found == NOTHING:
        target.unlink()  # of a process that was killed while it held the name
    return found


def write(target: Path, content: bytes, recording: Path, before: str) -> bool:
    """Write a subtitle: a new one, or in place of that with the digest `before`.

    Returns False if somebody else has written one meanwhile, which stays. Raises OSError; no other file is
    left then.

    Who may read the recording may read the subtitle: it gets the recording's permissions and, where this
    process may set them, its owner. A file that is replaced keeps its own.
    """
    part = temporary_path(target)
    write_part(part, content, _status(target) or _status(recording))
    own = {before, digest_of(content)} - {NOTHING}
    try:
        if not os.path.lexists(target):
            rename_new(part, target)
            return True
        return digest(target) in own and _replace(target, part, own)
    except FileExistsError:
        return False
    finally:
        part.unlink(missing_ok=True)


def recover(target: Path, own: Collection[str]) -> None:
    """End a replacement, also one of a killed process: put back what came out if it is somebody else's.

    Raises OSError.
    """
    aside = _aside(target)
    if not os.path.lexists(aside):
        return
    if digest(aside) not in own and digest(target) in own:
        exchange(aside, target)
    if digest(aside) in own:
        aside.unlink()


def _replace(target: Path, part: Path, own: Collection[str]) -> bool:
    """Put `part` in the place of a subtitle of this program. Returns False if it is somebody else's now."""
    # Under another name first: a search removes temporary files that it finds.
    aside = part.rename(_aside(target))
    try:
        if not exchange(aside, target):
            aside.replace(target)
    finally:
        recover(target, own)
    return digest(target) in own


def _aside(target: Path) -> Path:
    """Where a subtitle is while another one takes its place."""
    return temporary_path(target).with_suffix(".old")


def move(source: Path, target: Path) -> bool:
    """Move a subtitle along with its recording. Returns False if there is one at the target.

    Raises OSError.
    """
    try:
        rename_new(source, target)
    except FileExistsError:
        return False
    return True


def _is_subtitle(name: str, suffixes: Collection[str]) -> bool:
    return name.rpartition(".")[2].lower() in suffixes


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
