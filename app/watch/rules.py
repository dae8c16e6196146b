"""Rules for the recordings that are transcribed, and for their subtitles."""

import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from app.common.files import is_recording
from app.common.options import Options
from app.watch.sidecar import language_title, path_of, read_language, subtitles_beside

# Of files that a program is still writing.
_UNFINISHED = re.compile(
    r"~$|\.(part|partial|crdownload|download|downloading|tmp|temp|incomplete|aria2|opdownload|!qb|!ut|bc!|filepart)$"
    r"|\.(tmp|temp)\.[^.]+$",
    re.IGNORECASE,
)
_NO_LANGUAGE = frozenset({"", "und", "mul", "mis", "zxx"})  # of streams
# Folders of file systems and NAS systems. Hidden ones begin with a dot.
_SYSTEM_FOLDERS = frozenset(
    {"@eadir", "#recycle", "#snapshot", "$recycle.bin", "lost+found", "system volume information"}
)


@dataclass(frozen=True, slots=True)
class Rules:
    """What `whisperfleet watch` was asked for. Languages are Whisper's codes."""

    options: Options
    model: str = ""
    file_format: str = "srt"
    skip_existing: bool = False
    only_languages: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    min_duration_s: float = 0.0

    @property
    def language(self) -> str | None:
        """The language of the subtitles, if it is known before a transcription."""
        return "en" if self.options.task == "translate" else self.options.language

    @property
    def kind(self) -> str:
        """What is made of each recording. Each kind is made once."""
        return f"{self.file_format}:{self.options.task}"

    @property
    def digest(self) -> str:
        """Equal for rules under which recordings are transcribed and skipped alike."""
        rules = asdict(self) | {"options": self.options.model_dump(mode="json", exclude_defaults=True)}
        return hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()[:16]

    def other_language(self, language: str) -> str | None:
        """Why a recording in a language is excluded; None if it is not."""
        if not self.only_languages or language in self.only_languages:
            return None
        wanted = " or ".join(map(language_title, self.only_languages))
        return f"its language is {language_title(language)}, not {wanted}"

    def too_short(self, seconds: float) -> str | None:
        """Why a recording of a length is excluded; None if it is not."""
        if seconds >= self.min_duration_s:
            return None
        return f"it has {seconds:.1f} s, less than {self.min_duration_s:g} s"

    def subtitles(self, recording: Path, embedded: Iterable[str]) -> dict[str | None, str]:
        """Where subtitles are that need no second one, by `players_code`; None: they count for any language.

        Without `skip_existing`, only what has the name of the subtitle to write. `embedded`: the languages of
        the subtitles inside the file. Raises OSError.
        """
        names = [name for name in os.listdir(recording.parent) if name != recording.name]  # noqa: PTH208
        if not self.skip_existing:
            return {
                subtitle.language: subtitle.where
                for subtitle in subtitles_beside(recording, names, {self.file_format})
                if subtitle.language
                and subtitle.where == path_of(recording, subtitle.language, self.file_format).name
            }
        found = {subtitle.language: subtitle.where for subtitle in subtitles_beside(recording, names)}
        for tag in embedded:
            language = read_language(tag)
            if language or tag.lower() in _NO_LANGUAGE:
                found.setdefault(language, f"inside the file ({tag or 'of unknown language'})")
        return found

    def wants(self, relative: str) -> bool:
        """Whether to transcribe the file with this path, relative to the watched folder, if it is complete.

        A glob with a slash is compared with that path, and any other one with the file's name.
        """
        name = relative.rpartition("/")[2]
        if is_hidden(name) or _UNFINISHED.search(name):
            return False
        if any(_matches(relative, name, glob) for glob in self.exclude):
            return False
        if self.include:
            return any(_matches(relative, name, glob) for glob in self.include)
        return is_recording(PurePath(name))


def is_hidden(name: str) -> bool:
    """Whether a file or folder is hidden, or belongs to the system."""
    return name.startswith(".") or name.lower() in _SYSTEM_FOLDERS


def _matches(relative: str, name: str, glob: str) -> bool:
    path = relative if "/" in glob else name
    return fnmatchcase(path.lower(), glob.lower().removeprefix("./"))
