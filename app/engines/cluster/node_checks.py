"""What runs on a node before it gets workers: which versions it has, and where its files of a model are."""

import platform
import time
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from app.common.errors import ModelUnavailable
from app.engines.backend_choice import TORCH, torch_cuda
from app.engines.model_download import FILES
from app.engines.model_files import DEMO, REPOSITORIES, is_hub_id, local_folder, locate
from app.engines.nvml import query_nvml
from app.pool.cluster.ray_messages import FoundModel, NodeReport
from workers.messages import LoadOptions

# Without the same versions, messages are not understood, or the words of a transcript depend on the node.
_PACKAGES = ("whisperfleet", "ray", "ctranslate2", "faster-whisper")
_MISSING = "none"


def packages_of(backend: str) -> tuple[str, ...]:
    """The packages that all machines must share if their workers have this backend."""
    return (*_PACKAGES, TORCH) if backend == TORCH else _PACKAGES


def versions(packages: Sequence[str] = _PACKAGES) -> dict[str, str]:
    """The versions of Python and of the packages that all machines must share. Imports none of them."""
    numbers = {name: installed_version(name) or _MISSING for name in packages}
    return {"python": platform.python_version()} | numbers


def installed_version(package: str) -> str | None:
    """The version of a package, which is not imported; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def inspect() -> NodeReport:
    """What this machine says of itself. May block for a while if its driver does."""
    driver = query_nvml()
    names = tuple(gpu.name for gpu in driver.gpus if gpu.name)
    return NodeReport(versions(packages_of(TORCH)), time.time(), driver.version or None, names, torch_cuda())


def find_model(name: str) -> FoundModel:
    """The files of a model on this machine: a folder, the cache, or a download.

    Blocks until they are here; one process at a time downloads. Raises ModelUnavailable.
    """
    if local_folder(name) is None and not (name == DEMO or name in REPOSITORIES or is_hub_id(name)):
        raise ModelUnavailable(
            f"The folder {name} is not on this node: share it with the node, or copy it there."
        )
    return found_model(locate(name).path)


def found_model(folder: Path) -> FoundModel:
    """The files of a model in a folder that decide what its transcripts are, with their sizes."""
    files = {
        path.name: path.stat().st_size
        for path in folder.iterdir()
        if any(fnmatch(path.name, pattern) for pattern in FILES)
    }
    return FoundModel(str(folder), files)


def fault_of(report: NodeReport, options: LoadOptions) -> str | None:
    """Why workers of a node cannot load models with these options, in one line; None if they can."""
    fault = other_versions(versions(packages_of(options.backend)), report.versions)
    needs_cuda = options.backend == TORCH and options.device == "cuda"
    if fault is None and needs_cuda and report.torch_cuda is None:
        return f"its torch {report.versions[TORCH]} is built for CPUs alone. Install a build for CUDA there."
    return fault


def other_versions(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str | None:
    """What is wrong with the versions of a node, in one line; None if they are those of this machine. Pure.

    Patches of Python understand each other.
    """
    differing = [
        f"{name} {theirs.get(name, _MISSING)} (here {ours[name]})"
        for name in ours
        if _comparable(name, theirs.get(name, _MISSING)) != _comparable(name, ours[name])
    ]
    if not differing:
        return None
    return f"its versions differ: {', '.join(differing)}. Install the same ones on all nodes."


def _comparable(name: str, number: str) -> str:
    if name == TORCH:  # a front end without a GPU may have the build for CPUs: `2.13.0+cpu`
        return number.partition("+")[0]
    return ".".join(number.split(".")[:2]) if name == "python" else number


def other_files(name: str, ours: FoundModel, theirs: FoundModel) -> str | None:
    """What is wrong with a node's files of a model, in one line; None if they are like ours. Pure."""
    differing = [
        f"{file} {_size(theirs, file)} (here {_size(ours, file)})"
        for file in sorted({*ours.files, *theirs.files})
        if theirs.files.get(file) != ours.files.get(file)
    ]
    if not differing:
        return None
    return (
        f"its files of the model {name!r} in {theirs.path} differ: {', '.join(differing)}. "
        f"Copy those in {ours.path} there."
    )


def _size(model: FoundModel, file: str) -> str:
    return f"{model.files[file]:,} bytes" if file in model.files else "missing"
