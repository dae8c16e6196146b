"""`whisperfleet models`"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from app.commands.doctor.machine import gigabytes
from app.commands.ending import command, print_error
from app.common.errors import InvalidSetting, ModelUnavailable
from app.engines.model_download import WEIGHTS, cache_folder, cached_folder, repository_folder
from app.engines.model_files import (
    DEMO,
    REPOSITORIES,
    ModelFiles,
    find,
    local_folder,
    model_name,
    repository_of,
)
from app.engines.plan import make_plan
from app.settings import load_settings
from workers.whisper.model_check import check_files, read_shape


@command()
def run_list() -> int:
    """Print the models that are on this machine, and those that have a short name. Returns the exit code."""
    default, *others = make_plan(load_settings(engine="local")).models
    rows = list(_listed_models(default, others))
    header = ("NAME", "SIZE", "STATE", "REPOSITORY OR FOLDER")
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for name, size, state, source in (header, *rows):
        line = f"{name:<{widths[0]}}  {size:>{widths[1]}}  {state:<{widths[2]}}  {source}"
        print(line.rstrip())
    print(f"\nDownloaded models are in {cache_folder()}.")
    return 0


def _listed_models(default: str, others: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """The bundled model, those that settings name, those with a short name, and others in the cache.

    Of each its name, its size on this machine, its state, and its repository or folder.
    """
    sizes: dict[str, str] = {}
    for name, repository in REPOSITORIES.items():
        sizes.setdefault(repository, name)
    cached = [
        path.name.removeprefix("models--").replace("--", "/", 1)
        for path in sorted(cache_folder().glob("models--*"))
    ]
    named = (sizes.get(name, name) for name in (default, *others) if name not in REPOSITORIES)
    found = [sizes.get(name, name) for name in cached if name in sizes or _has_weights(name)]
    for name in dict.fromkeys([DEMO, *named, *sizes.values(), *found]):
        repository = repository_of(name)
        shown = f"{name} (default)" if repository == repository_of(default) else name
        folder, cached_size = local_folder(name), _bytes(repository_folder(repository))
        if folder is not None:
            source = "bundled" if name == DEMO else repository
            yield shown, gigabytes(cached_size or _bytes(folder)), _state(folder), source
        elif cached_size:
            yield shown, gigabytes(cached_size), "incomplete: pull it again", repository
        else:
            yield shown, "", "not here", repository


@command(stopped="stopped; the next pull goes on from here")
def run_pull(names: Sequence[str]) -> int:
    """Download models, with a progress bar. Returns the exit code: 1 if one failed, 2 for an unknown name."""
    models = [_checked_name(name) for name in names]
    done = [_pull(name) for name in dict.fromkeys(models)]
    return 0 if all(done) else 1


def _checked_name(name: str) -> str:
    """The model that a user names. Raises InvalidSetting."""
    if name == "auto":
        return make_plan(load_settings(engine="local", model="auto", models=())).models[0]
    try:
        return model_name("", name, "cpu")
    except InvalidSetting as error:
        raise InvalidSetting(error.message.removeprefix("=")) from None


def _pull(name: str) -> bool:
    """Whether it worked; prints why not."""
    try:
        was_here = local_folder(name) is not None
        files = asyncio.run(find_with_bar(name))
        problem = _problem(files.path)
        if problem is not None:
            cached = repository_folder(repository_of(name))
            cure = f" Delete {cached}, and pull it again." if cached in files.path.parents else ""
            print_error(f"the model {name!r} in {files.path} cannot be used: {problem}.{cure}")
            return False
    except ModelUnavailable as error:
        print_error(error.message)
        return False
    done = "is already here" if was_here else "downloaded"
    print(f"{name}: {done}, {gigabytes(_bytes(files.path))}, {files.path}")
    return True


async def find_with_bar(name: str) -> ModelFiles:
    """A model's files, which are downloaded with a progress bar on standard error if they are not here.

    Raises ModelUnavailable.
    """
    if await asyncio.to_thread(local_folder, name) is not None:
        return await find(name)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    console.print(
        f"downloading {name} from {repository_of(name)}", markup=False, highlight=False, soft_wrap=True
    )
    with Progress(*columns, console=console) as bars:
        bar = bars.add_task(name, total=None)
        return await find(name, lambda done, size: bars.update(bar, completed=done, total=size))


def _problem(folder: Path) -> str | None:
    """Why a model's files cannot be used, as far as their headers say; None if nothing speaks against it."""
    try:
        check_files(folder)
    except (RuntimeError, OSError) as error:
        return str(error)
    if read_shape(folder / WEIGHTS) is None:
        return f"{WEIGHTS} is not a Whisper model in CTranslate2 format"
    return None


def _state(folder: Path) -> str:
    problem = _problem(folder)
    return f"damaged: {problem}" if problem else "complete"


def _has_weights(repository: str) -> bool:
    """Whether a repository in the cache looks like a Whisper model in CTranslate2 format."""
    folder = cached_folder(repository)
    return folder is not None and read_shape(folder / WEIGHTS) is not None


def _bytes(folder: Path) -> int:
    """The size of the files in a folder on this machine; links are not followed, except at the top."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if not path.is_symlink() or place == str(folder):
                with suppress(FileNotFoundError):  # a download has just renamed it
                    total += path.stat().st_size
    return total
