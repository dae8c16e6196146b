"""Which model a setting names, and where its files are. Downloads them once, not in each worker."""

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from app.common.concurrency import in_daemon_thread
from app.common.errors import InvalidSetting
from app.engines.model_download import Report, cached_folder, download
from workers.messages import FULL_CONTEXT_S
from workers.whisper.model_check import read_json, read_shape

DEMO = "demo"
DEMO_PATH = Path(__file__).parents[2] / "workers" / "demo_model"
AUTO = {"cuda": "large-v3-turbo", "cpu": "small"}

# Sizes and the repositories that hold them in CTranslate2 format, as faster-whisper names them.
REPOSITORIES: dict[str, str] = tomllib.loads(Path(__file__).with_name("repositories.toml").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model's name in requests, and the folder with its files."""

    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a model can do, as its files say; or its name, as long as they are not on this machine."""

    languages: tuple[str, ...]  # that it knows, ISO 639-1; none: perhaps all
    translates: bool
    # The least audio context for short windows that it was trained for, at most 30 s. A model says so as
    # `min_audio_context_s` in its `generation_config.json`; None: it does not.
    min_context_s: float | None


def model_name(variable: str, setting: str, device: str) -> str:
    """The model that the setting `variable` names, on a device ("cuda" or "cpu").

    Raises InvalidSetting for an unknown size and for a folder without a model.
    """
    if setting == "auto":
        return AUTO[device]
    if setting == DEMO or setting in REPOSITORIES:
        return setting
    path = Path(setting).expanduser()
    if path.is_dir():
        if not (path / "model.bin").is_file():
            raise InvalidSetting(
                f"{variable}={setting}: the folder has no model.bin; convert the model to CTranslate2 "
                "format with ct2-transformers-converter"
            )
        return setting
    if is_hub_id(setting):
        return setting
    kind = (
        "there is no such folder"
        if os.sep in setting
        else f"unknown size; known are {', '.join(REPOSITORIES)}"
    )
    raise InvalidSetting(f"{variable}={setting}: {kind}")


def is_hub_id(name: str) -> bool:
    """Whether a name can be `owner/model` on Hugging Face."""
    parts = name.split("/")
    well_formed = all(re.fullmatch(r"\w([\w.-]*\w)?", part) for part in parts)
    return len(parts) == 2 and well_formed and "--" not in name and ".." not in name


def abilities_of(name: str, folder: Path | None) -> Abilities:
    """What a model can do. Reads the start of `model.bin` and `generation_config.json`, if `folder` has them.

    Turbo, distilled and English-only models were not trained to translate.
    """
    own_name = Path(name).name.lower()  # `tiny.en` of `/models/tiny.en/`
    shape = read_shape(folder / "model.bin") if folder else None
    english_only = re.search(r"\.en\b", own_name) is not None if shape is None else not shape.multilingual
    return Abilities(
        languages=("en",) if english_only else (),
        translates=not (english_only or "turbo" in own_name or "distil" in own_name),
        min_context_s=_min_context_s(folder) if folder else None,
    )


def _min_context_s(folder: Path) -> float | None:
    value = read_json(folder / "generation_config.json").get("min_audio_context_s")
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return min(float(value), FULL_CONTEXT_S)
    return None


def locate(name: str, report: Report | None = None) -> ModelFiles:
    """A model's files, which are downloaded if they are not on this machine. Blocks until they are here.

    `report` takes the progress of a download. Raises ModelUnavailable, whose message names the model and says
    what to do. Without a connection that takes `CONNECT_TIMEOUT_S` at most.
    """
    return ModelFiles(name, local_folder(name) or download(name, repository_of(name), report))


def repository_of(name: str) -> str:
    """The repository on Hugging Face that holds a model."""
    return REPOSITORIES.get(name, name)


def local_folder(name: str) -> Path | None:
    """The folder with a model's files; None if they are not on this machine."""
    if name == DEMO:
        return DEMO_PATH
    if name not in REPOSITORIES and Path(name).expanduser().is_dir():
        return Path(name).expanduser()  # a folder that is called like a size is `./small`
    return cached_folder(repository_of(name))


async def find(name: str, report: Report | None = None) -> ModelFiles:
    """`locate` in a daemon thread, which calls `report`."""
    return await in_daemon_thread(f"find {name}", lambda: locate(name, report))
