"""Arguments of commands: files in, files out, and options."""

import glob
import os
import sys
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from pydantic import ValidationError

from app.common.errors import InvalidInput, fault_of
from app.common.files import is_recording, safe_name, write_whole
from app.common.options import Options
from app.common.suggestions import nearest_name
from app.transcript.formats import FORMATS
from app.transcript.rendering import without_effect
from app.transcript.term_list import EXAMPLE, read_terms
from app.transcript.terms import Term

STANDARD_STREAM = Path("-")

Target = tuple[Path, Path | None]  # an input and its output file; None: standard output


@dataclass(frozen=True, slots=True)
class Input:
    """A file to read, and the named folder in which it was found; None if the file was named."""

    path: Path
    folder: Path | None = None
    url: str | None = None  # which the path stands for, in messages and names of outputs

    @property
    def below(self) -> str:
        """Where it is below the named folder, with `/` between folders; empty if it is in that."""
        return "/".join(self.path.parent.relative_to(self.folder).parts) if self.folder else ""


def find_recordings(named: Sequence[str | Path]) -> list[Input]:
    """The named files and URLs, and the recordings in named folders and in the folders below, in order.

    A name with `*`, `?` or `[` that is no file stands for what it matches: not every shell expands it.
    Raises `InvalidInput` if something is missing, or a folder has no recordings.
    """
    found: list[Input] = []
    for name in named:
        if str(name).startswith(("http://", "https://")):
            found.append(_behind(str(name)))
        else:
            found += [recording for path in _matches(Path(name)) for recording in _recordings(path)]
    return found


def _behind(url: str) -> Input:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InvalidInput(f"{url} is no URL: {error}") from None
    place, host = PurePosixPath(unquote(parts.path)), parts.hostname or ""
    # Some sites have the name of a recording in the query.
    name = place.name if place.suffix or not parts.query else f"{place.name}?{parts.query}"
    return Input(Path(host, safe_name(name) or host), url=url)


def _matches(name: Path) -> list[Path]:
    if name.exists():
        return [name]
    if glob.has_magic(str(name)):
        pattern = os.path.expanduser(str(name))  # noqa: PTH111 - as the shell does, before it expands
        if found := sorted(glob.glob(pattern, recursive=True)):  # noqa: PTH207 - absolute patterns, too
            return [Path(path) for path in found]
        raise InvalidInput(f"no file matches {name}")
    raise InvalidInput(f"there is no file {name}")


def _recordings(path: Path) -> Iterator[Input]:
    if not path.is_dir():
        yield Input(path)
        return
    found = False
    for recording in _walk(path):
        found = True
        yield Input(recording, path)
    if not found:
        raise InvalidInput(f"there are no recordings in the folder {path}: files are found by their suffixes")


def _walk(folder: Path) -> Iterator[Path]:
    """The recordings below a folder. Links to folders are not followed: they may lead in circles.

    Raises `InvalidInput` for a folder that cannot be read.
    """

    def refuse(error: OSError) -> None:
        raise InvalidInput(f"the folder {error.filename} cannot be read: {error.strerror}")

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(place, name)
            if is_recording(path) and path.is_file():
                yield path


def named_files(files: Sequence[Path]) -> list[Input]:
    """The files that a command takes one by one. Raises `InvalidInput` for a folder or a missing file."""
    folders = [file for file in files if file.is_dir()]
    if folders:
        raise InvalidInput(f"{', '.join(map(str, folders))} is a folder: name the files in it")
    missing = [file for file in files if not file.is_file() and file != STANDARD_STREAM]
    if missing:
        raise InvalidInput(f"there is no file {', '.join(map(str, missing))}")
    return [Input(file) for file in files]


def choose_format(output: str | None, file_format: str | None, recordings: Sequence[Input] = ()) -> str:
    """The format by its name or, without one, by the suffix of the output file. Raises `InvalidInput`."""
    suffix = _suffix(output)
    if _has_many(recordings) and suffix in FORMATS:
        raise InvalidInput(
            f"{output} is the name of one file, and there may be several outputs: name a folder, as {output}/"
        )
    if file_format is None and suffix and suffix not in FORMATS and not _has_many(recordings):
        raise InvalidInput(
            f"the format of {output} is not known. Add --format, or choose a suffix: "
            f"{', '.join(f'.{name}' for name in FORMATS)}"
        )
    chosen = (file_format or (suffix if suffix in FORMATS else "srt")).lower()
    if chosen not in FORMATS:
        raise InvalidInput(f"--format {chosen} is not known. Choose one of {', '.join(FORMATS)}")
    return chosen


def _suffix(output: str | None) -> str:
    """The suffix of an output file; empty if the output is none."""
    if not output or Path(output) == STANDARD_STREAM or _is_folder(output):
        return ""
    return Path(output).suffix.lstrip(".").lower()


def _has_many(recordings: Sequence[Input]) -> bool:
    return len(recordings) > 1 or any(one.folder is not None for one in recordings)


def plan_targets(recordings: Sequence[Input], output: str | None, chosen: str) -> list[Target]:
    """Each input with its output, which is in the format `chosen`. Creates the output folder.

    The outputs of a named folder lie beside its recordings or, with an output folder, at the same places in
    that. Raises `InvalidInput` if an output cannot be written, if it would replace an input, or if two inputs
    have the same output.
    """
    target = Path(output) if output and Path(output) != STANDARD_STREAM else None
    has_folders = any(recording.folder is not None for recording in recordings)
    if output and target is None and has_folders:
        raise InvalidInput("the outputs of a folder cannot go to standard output: name a folder with -o")
    if target is not None and (_is_folder(str(output)) or _has_many(recordings)):
        targets = _folder_targets(recordings, target, chosen)
    elif has_folders:
        targets = [(one.path, one.path.with_suffix(f".{chosen}")) for one in recordings]
    elif len(recordings) > 1:
        raise InvalidInput("several files need an output folder: add -o FOLDER")
    elif target is not None and not target.parent.is_dir():
        raise InvalidInput(f"{target} cannot be written: there is no folder {target.parent}")
    else:
        targets = [(recordings[0].path, target)]
    _check_outputs(targets)
    return targets


def _is_folder(output: str) -> bool:
    return output.endswith(("/", os.sep)) or Path(output).is_dir()


def _folder_targets(recordings: Sequence[Input], folder: Path, chosen: str) -> list[Target]:
    """Each recording with a file of the same name in `folder`, or in the same folder below it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"the folder {folder} cannot be created: {error.strerror}") from None
    targets: list[Target] = []
    for one in recordings:
        stem = "stdin" if one.path == STANDARD_STREAM else one.path.stem
        targets.append((one.path, folder / one.below / f"{stem}.{chosen}"))
    return targets


def _check_outputs(targets: Sequence[Target]) -> None:
    inputs = {file.resolve() for file, _ in targets}
    written: dict[Path, Path] = {}
    for file, output in targets:
        if output is None:
            continue
        place = output.resolve()
        if place in inputs:
            raise InvalidInput(f"the output would replace {place}: choose another with -o")
        if place in written:
            raise InvalidInput(
                f"{written[place]} and {file} would have the same output file, {output}: give them "
                "one by one, with different outputs"
            )
        written[place] = file
    for folder in {place.parent for place in written}:
        if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
            raise InvalidInput(f"the folder {folder} cannot be written by this user: choose another with -o")


def check_options(options: dict[str, object]) -> Options:
    """The options that the user gave by name. Raises `InvalidInput` for an unknown name or a bad value."""
    unknown = sorted(set(options) - set(Options.model_fields))
    if unknown:
        near = nearest_name(unknown[0], Options.model_fields)
        raise InvalidInput(
            f"unknown option {', '.join(unknown)}: "
            + (f"did you mean {near}? See" if near else "see")
            + " --help and docs/formats.md"
        )
    try:
        return Options.model_validate(options)
    except ValidationError as error:
        # A check of several fields together names none of them.
        faults = [": ".join([*map(str, problem["loc"][:1]), fault_of(problem)]) for problem in error.errors()]
        raise InvalidInput("; ".join(faults)) from None


def check_terms(file: Path | None) -> tuple[Term, ...]:
    """The terms in the file that the user named, if any. Raises `InvalidInput`."""
    try:
        return () if file is None else read_terms(file)
    except OSError as error:
        raise InvalidInput(f"--terms {file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InvalidInput(f"--terms {file}: {error}. It is JSON as {EXAMPLE}") from None


def note_without_effect(options: Options, chosen: str | None) -> None:
    """Print which of the options that the user gave have no effect in the format `chosen`; None: in any."""
    for name, need in without_effect(options, options.model_fields_set, chosen).items():
        print(f"{name} has no effect here: {need}", file=sys.stderr)


def write_output(target: Path | None, content: bytes) -> None:
    """Write the file, whole or not at all, or standard output. Creates the file's folder. Raises OSError.

    A file that is replaced keeps who may read it.
    """
    if target is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    target = target.resolve()  # what a link points to is written, not the link
    if target.exists() and not target.is_file():
        target.write_bytes(content)  # a device or a pipe
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".whisperfleet-{uuid.uuid4().hex}.part")
    try:
        write_whole(target, content, part, target.stat() if target.exists() else None)
    except OSError as error:
        error.filename = str(target)  # not the name that nobody has chosen
        raise


def store_beside(target: Target, content: bytes) -> Path:
    """A new file with the content: named like the target's output, or like its input if it has no output.

    It has the suffix .json, and a number if need be. Raises OSError.
    """
    recording, output = target
    beside = output or Path(recording.name)
    beside.parent.mkdir(parents=True, exist_ok=True)
    for number in count():
        path = beside.with_name(f"{beside.stem}{f'.{number}' if number else ''}.json")
        try:
            with path.open("xb") as file:
                file.write(content)
        except FileExistsError:
            continue
        return path
    raise AssertionError("count() does not end")
