"""What `transcribe` and `subtitles` have in common: files in, files out, and options."""

import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from app.errors import InvalidInput
from app.options import Options
from app.transcript.formats import FORMATS

STANDARD_STREAM = Path("-")

Target = tuple[Path, Path | None]  # an input and its output file; None: standard output


def choose_format(output: str | None, file_format: str | None) -> str:
    """The format by its name or, without one, by the suffix of the output. Raises `InvalidInput`."""
    suffix = Path(output).suffix.lstrip(".").lower() if output else ""
    chosen = (file_format or (suffix if suffix in FORMATS else "srt")).lower()
    if chosen not in FORMATS:
        raise InvalidInput(f"--format {chosen} is not known. Choose one of {', '.join(FORMATS)}")
    return chosen


def plan_targets(files: Sequence[Path], output: str | None, chosen: str) -> list[Target]:
    """Each input with its output, which is in the format `chosen`. Creates the output folder.

    Raises `InvalidInput` if an input is missing, an output cannot be written, or one would replace an input.
    """
    _check_files(files)
    target = Path(output) if output and Path(output) != STANDARD_STREAM else None
    if target is not None and (target.is_dir() or str(output).endswith("/") or len(files) > 1):
        targets = _folder_targets(files, target, chosen)
    else:
        targets = _single_target(files, target)
    _check_outputs(targets)
    return targets


def _check_files(files: Sequence[Path]) -> None:
    folders = [file for file in files if file.is_dir()]
    if folders:
        raise InvalidInput(f"{', '.join(map(str, folders))} is a folder: name the files in it")
    missing = [file for file in files if not file.is_file() and file != STANDARD_STREAM]
    if missing:
        raise InvalidInput(f"there is no file {', '.join(map(str, missing))}")


def _single_target(files: Sequence[Path], output: Path | None) -> list[Target]:
    if len(files) > 1:
        raise InvalidInput("several files need an output folder: add -o FOLDER")
    if output is not None and not output.parent.is_dir():
        raise InvalidInput(f"{output} cannot be written: there is no folder {output.parent}")
    return [(files[0], output)]


def _folder_targets(files: Sequence[Path], folder: Path, chosen: str) -> list[Target]:
    """Each file with a file of the same name in `folder`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"the folder {folder} cannot be created: {error.strerror}") from None
    names = ["stdin" if file == STANDARD_STREAM else file.stem for file in files]
    return [(file, folder / f"{name}.{chosen}") for file, name in zip(files, names, strict=True)]


def _check_outputs(targets: Sequence[Target]) -> None:
    outputs = [output.resolve() for _, output in targets if output]
    if len(set(outputs)) < len(outputs):
        raise InvalidInput("two files would have the same output file: give them one by one")
    replaced = {file.resolve() for file, _ in targets}.intersection(outputs)
    if replaced:
        raise InvalidInput(
            f"the output would replace {', '.join(map(str, replaced))}: choose another with -o"
        )


def check_options(options: dict[str, object]) -> Options:
    """The options that the user gave by name. Raises `InvalidInput` for an unknown name or a bad value."""
    unknown = set(options) - set(Options.model_fields)
    if unknown:
        raise InvalidInput(f"unknown option {', '.join(sorted(unknown))}: see --help and docs/formats.md")
    try:
        return Options.model_validate(options)
    except ValidationError as error:
        # A check of several fields together names none of them.
        faults = [": ".join([*map(str, fault["loc"][:1]), fault["msg"]]) for fault in error.errors()]
        raise InvalidInput("; ".join(faults)) from None


def write_output(target: Path | None, content: bytes) -> None:
    """Write the file, or standard output. Raises OSError."""
    if target is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        target.write_bytes(content)
