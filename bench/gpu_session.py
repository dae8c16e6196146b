"""What a GPU shows of this service within 8 minutes, for a machine without network that is lent for so long.

    .venv/bin/python bench/gpu_session.py --prepare FOLDER          # here, with the service's packages
    python3 bench/gpu_session.py --carried FOLDER/first --out OUT   # there: torch and numpy are enough
    python3 bench/gpu_session.py --carried FOLDER/second --out OUT2 --groups make-turbo,ctranslate2

`--prepare` decodes the recordings, writes what models give for them, and packs the service's packages for
Python 3.12 on x86-64: too much for one folder, so the first lacks CTranslate2 and the second av. With
`--no-packages` there is one folder without any, for what needs none.

Each group of parts has a process of its own, and each part a deadline. The results so far are in session.md
and session.json of the folder `--out` after each part. `--device cpu --small` checks that all of it runs.
"""

import argparse
import json
import lzma
import os
import platform
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.gpu_decoding import LARGE, TURBO, Decoding, Found, Models, Session, expectations
from bench.measuring import markdown
from bench.recordings import TALK, read
from bench.sized_model import DEMO_PATH

ROOT = Path(__file__).parents[1]
PART_S = 60  # deadline of a part, and of some that take longer
LONGER_S = {"hour": 120, "eight": 120, "bias": 90, "streams": 90, "streams beside files": 100}
GRACE_S = 5  # after a deadline, for a part that does not notice it
LIMIT_BYTES = 64 << 20  # of this tree and what is carried


@dataclass(frozen=True)
class Group:
    """Parts that share a process."""

    open: Callable[[Session, ExitStack], Any]
    parts: Sequence[str]  # in order
    needs: Sequence[str] = ()  # packages; those of the service with them


def _service(name: str, *arguments: str) -> Callable[[Session, ExitStack], Any]:
    """A class of `bench.gpu_service`, whose packages may be absent."""
    return lambda session, stack: getattr(import_module("bench.gpu_service"), name)(
        session, stack, *arguments
    )


GROUPS = {
    "make-turbo": Group(Models, (TURBO,)),
    "turbo": Group(
        lambda session, _: Decoding(session, TURBO),
        ("load", "texts", "speed", "graphs", "drafts", "bytes", "memory", "batches"),
    ),
    # A profiler may slow down what its process does later.
    "kernels": Group(lambda session, _: Decoding(session, TURBO), ("stages",)),
    "make-large": Group(Models, (LARGE,)),
    "large": Group(lambda session, _: Decoding(session, LARGE), ("load", "texts", "speed", "memory")),
    "worker": Group(_service("Workers", "torch"), ("batches",), ("av",)),
    "service": Group(
        _service("Service", "torch"), ("hour", "eight", "streams", "streams beside files"), ("av",)
    ),
    "ctranslate2": Group(_service("Workers", "ctranslate2"), ("batches", "bias"), ("ctranslate2",)),
    "upload": Group(_service("Service", "ctranslate2"), ("hour",), ("av", "ctranslate2")),
}

# What it is, today's figure, the target, and where the figures are: part, name, digits, unit.
Place = tuple[str, str, str, str]
TABLE: Sequence[tuple[str, str, str, Sequence[Place]]] = (
    (
        "16 windows of 29 s, turbo's size, beam 5, words, alone",
        "1.82 s (8 threads)",
        "≤ 0.22 s",
        (
            ("turbo speed", "batch s", ".3f", " s (backend)"),
            ("worker batches", "batch s", ".3f", " s (worker)"),
            ("ctranslate2 batches", "batch s", ".2f", " s (CTranslate2)"),
            ("ctranslate2 bias", "bias: batch s", ".2f", " s (CTranslate2, bias, 1 thread)"),
        ),
    ),
    (
        "the same in a stream of batches",
        "1.82 s",
        "≤ 0.15 s",
        (
            ("turbo speed", "in a stream s", ".3f", " s (backend)"),
            ("worker batches", "stream s", ".3f", " s (worker)"),
            ("ctranslate2 batches", "stream s", ".2f", " s (CTranslate2)"),
        ),
    ),
    (
        "upload of an hour's MP3 to SRT, one worker",
        "18.8 s",
        "≤ 6 s",
        (
            ("service hour", "mp3 s", ".1f", " s"),
            ("service hour", "first mp3 s", ".1f", " s (the first)"),
            ("upload hour", "mp3 s", ".1f", " s (CTranslate2)"),
        ),
    ),
    (
        "eight such at once, 16 cores",
        "–",
        "≥ 1,500 × real time",
        (("service eight", "x real time", ".0f", " ×"),),
    ),
    (
        "kernels' share of the time, decoding alone",
        "< 10 %",
        "≥ 70 %",
        (("kernels stages", "kernels' share", ".0%", ""),),
    ),
    ("large-v3's size, decoding alone", "–", "≥ 700 ×", (("large speed", "x real time", ".0f", " ×"),)),
    (
        "a draft of two windows (10 s) alone; beside files",
        "0.18; 0.51 s",
        "≤ 0.05; ≤ 0.35 s",
        (
            ("turbo drafts", "alone s", ".3f", " s"),
            ("turbo drafts", "beside batches s", ".3f", " s"),
        ),
    ),
    (
        "100 streams, first words",
        "23 s (80, H100)",
        "≤ 1 s",
        (
            ("service streams", "first words s", ".2f", " s"),
            ("service streams beside files", "first words s", ".2f", " s (beside files)"),
        ),
    ),
    (
        "other bytes of a window, by what is beside it",
        "may differ",
        "0",
        (
            ("turbo bytes", "results", "d", " results"),
            ("turbo bytes", "moved: other tokens", "d", " texts"),
            ("turbo bytes", "moved: other scores", "d", " scores"),
            ("turbo bytes", "alone: other scores", "d", " scores alone"),
        ),
    ),
    (
        "model loaded, first batch answered",
        "14 to 17 s",
        "≤ 10 s",
        (("turbo load", "all s", ".1f", " s"),),
    ),
    (
        "word errors on an hour of talk",
        "0.008",
        "the same",
        (
            ("service hour", "mp3 word errors", ".3f", ""),
            ("upload hour", "mp3 word errors", ".3f", " (CTranslate2)"),
        ),
    ),
)


def report(results: dict[str, Found], about: Found) -> str:
    """The table of targets, and all figures below it."""
    rows = []
    for title, today, target, places in TABLE:
        found = [
            f"{results[part][name]:{form}}{unit}"
            for part, name, form, unit in places
            if isinstance(results.get(part, {}).get(name), int | float)
        ]
        rows.append([title, today, target, "; ".join(found) or "not measured"])
    lines = [f"{name}: {value}" for name, value in about.items()]
    lines += ["", *markdown(["", "today", "target", "found"], rows), ""]
    figures = [
        [part, name, f"{value:.4g}" if isinstance(value, float) else value]
        for part, found in results.items()
        for name, value in found.items()
    ]
    return "\n".join([*lines, *markdown(["part", "what", "found"], figures), ""])


def run_group(name: str, parts: Sequence[str], session: Session, file: Path) -> None:
    """Measure parts of a group in this process, and write each part's figures as soon as they are there."""
    results: dict[str, Found] = {}

    def note(part: str, found: Found) -> None:
        results[f"{name} {part}"] = found
        new = file.with_suffix(".new")
        new.write_text(json.dumps(results))
        new.replace(file)

    def stop(*_: object) -> None:
        raise TimeoutError("it took too long")

    signal.signal(signal.SIGALRM, stop)
    with ExitStack() as stack:
        opened = GROUPS[name].open(session, stack)
        measured = opened.parts()
        for part in (part for part in parts if part in measured):
            seconds = LONGER_S.get(part, PART_S)
            note(part, {"error": "its process ended", "until": time.time() + seconds})
            began = time.perf_counter()
            signal.alarm(seconds)
            try:
                found = measured[part]()
            except Exception as error:
                found = {"error": f"{type(error).__name__}: {error}"}
            finally:
                signal.alarm(0)
            note(part, found | {"took s": time.perf_counter() - began})
            if "CUDA error" in str(found.get("error")):
                break  # nothing else runs in this process


class Run:
    """A session's processes, one after another, and their results."""

    def __init__(self, arguments: argparse.Namespace, models: Path) -> None:
        self._arguments, self._models = arguments, models
        self._end = time.time() + 60 * arguments.minutes - GRACE_S
        self._results: dict[str, Found] = {}
        self._about = machine(arguments.device)

    def all_groups(self, names: Sequence[str]) -> None:
        """Measure what there is time for."""
        packages = self._arguments.carried / "packages.tar.xz"
        environment = self._unpacked(packages) if packages.exists() else {}
        for name in names:
            group = GROUPS[name]
            if any(not self._has(need) for need in group.needs):
                self._results[name] = {"error": "its packages are not here"}
                continue
            wanted = self._arguments.parts
            left = [part for part in group.parts if not wanted or part in wanted.split(",")]
            while left and time.time() < self._end:
                done = self._group(name, left, os.environ | (environment if group.needs else {}))
                # A process that ended in a part: another one goes on behind it.
                left = left[max((left.index(part) + 1 for part in done), default=len(left)) :]
        self._write()

    def _has(self, package: str) -> bool:
        return find_spec(package) is not None or (self._models / "site" / f"{package}.libs").exists()

    def _unpacked(self, packages: Path) -> dict[str, str]:
        """The environment in which the carried packages are found, and cuBLAS by the name of CUDA 12."""
        site = self._models / "site"
        with tarfile.open(packages) as content:
            content.extractall(site, filter="data")
        about = site / "whisperfleet-0.dist-info" / "METADATA"  # it asks for its own version
        about.parent.mkdir()
        about.write_text("Metadata-Version: 2.1\nName: whisperfleet\nVersion: 0\n")
        for package in ABSENT:  # something for faster-whisper to import
            (site / package).mkdir(exist_ok=True)
            with suppress(FileExistsError), (site / package / "__init__.py").open("x") as file:
                file.write(_ANYTHING)
        libraries = self._models / "libraries"
        libraries.mkdir(exist_ok=True)
        folders = [libraries]
        spec = find_spec("nvidia")
        for root in (spec.submodule_search_locations or ()) if spec else ():
            for name in ("libcublas", "libcublasLt"):
                for library in Path(root).rglob(f"{name}.so.1?"):
                    with suppress(FileExistsError):
                        (libraries / f"{name}.so.12").symlink_to(library)
            folders += {found.parent for found in Path(root).rglob("lib*.so*")}
        path = ":".join([*map(str, folders), os.environ.get("LD_LIBRARY_PATH", "")])
        return {"PYTHONPATH": f"{site}:{ROOT}", "LD_LIBRARY_PATH": path.rstrip(":")}

    def _group(self, name: str, parts: Sequence[str], environment: dict[str, str]) -> list[str]:
        """Run a process for a group until it ends or hangs. Returns the parts that it is done with."""
        file = self._models / "results.json"
        file.unlink(missing_ok=True)
        given = self._arguments
        command = [sys.executable, str(Path(__file__)), "--group", name, "--parts", ",".join(parts)]
        command += ["--device", given.device, "--carried", str(given.carried), "--models", str(self._models)]
        command += ["--small"] if given.small else []
        log = given.out / "session.log"
        with log.open("a") as output:
            process = subprocess.Popen(
                command, env=environment, stdout=output, stderr=output, cwd=ROOT, start_new_session=True
            )
        found: dict[str, Found] = {}
        try:
            while process.poll() is None:
                time.sleep(0.2)
                found = self._read(file)
                until = max((part.get("until", 0) for part in found.values()), default=0) or self._end
                if time.time() > min(until + GRACE_S, self._end):
                    break
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a service with it
            process.wait()
        found = self._read(file)
        if process.returncode == 0:
            return list(parts)
        if not found:
            self._results[name] = {"error": f"its process ended with {process.returncode}: see session.log"}
            self._write()
        return [part.removeprefix(f"{name} ") for part in found]

    def _read(self, file: Path) -> dict[str, Found]:
        found: dict[str, Found] = json.loads(file.read_text()) if file.exists() else {}
        new = {part: figures for part, figures in found.items() if self._results.get(part) != figures}
        if new:
            self._results |= new
            self._write()
            for part, figures in new.items():
                if "until" not in figures:
                    print(f"{part}: {shown(figures)}", flush=True)
        return found

    def _write(self) -> None:
        out = self._arguments.out
        parts = {
            part: {name: value for name, value in found.items() if name != "until"}
            for part, found in self._results.items()
        }
        (out / "session.json").write_text(json.dumps({"machine": self._about, "parts": parts}, indent=1))
        (out / "session.md").write_text(report(parts, self._about))


def shown(figures: Found) -> str:
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in figures.items()
    )


def machine(device: str) -> Found:
    """What computes here; without CUDA, which belongs to the processes of the parts."""
    about: Found = {"python": platform.python_version(), "cores": len(os.sched_getaffinity(0))}
    if device == "cuda":
        query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
        with suppress(OSError, subprocess.CalledProcessError):
            about["gpu"] = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    from importlib.metadata import version

    return about | {name: version(name) for name in ("torch", "numpy")}


def prepare(folder: Path, *, packages: bool, small: bool) -> None:
    """Write what a session is to carry, and say how large it is."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    tree = [ROOT / name for name in listed.stdout.split("\0") if name]
    tree_bytes = sum(path.stat().st_size for path in tree if path.exists())
    folders = list(ABSENT.values()) if packages else [""]
    for name in folders:
        (folder / name).mkdir(parents=True, exist_ok=True)
        sounds = {"talk": read(TALK), "sample": read(DEMO_PATH / "sample.flac")}
        np.savez_compressed(folder / name / "sounds.npz", allow_pickle=False, **sounds)
    known = json.dumps(expectations(folder / folders[0], small=small))
    for name in folders:
        (folder / name / "prepared.json").write_text(known)
    if packages:
        pack(folder)
    for name in folders:
        sizes = {path.name: path.stat().st_size for path in (folder / name).iterdir()} | {"tree": tree_bytes}
        total = sum(sizes.values())
        listing = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in sizes.items())
        fits = "fits into" if total <= LIMIT_BYTES else "IS MORE THAN"
        print(f"{folder / name}: {listing}: {total / 1e6:.1f} MB {fits} {LIMIT_BYTES / 1e6:.1f}")


# The package that a folder lacks, and the folder.
ABSENT = {"ctranslate2": "first", "av": "second"}
# Packages that such a machine has, and their needs; it has other versions of them.
PRESENT = {"torch", "torchaudio", "numpy", "onnxruntime", "tokenizers", "hf-xet", "lxml", "pygments"}
# A package that is not there, for annotations: it has whatever is asked for.
_ANYTHING = """
class Anything(type):
    def __getattr__(cls, name):
        return Anything(name, (), {})
__getattr__ = Anything("module", (), {}).__getattr__
"""
MORE = ("jiwer", "psutil")  # of the benchmarks
PLATFORMS = [f"manylinux{kind}_x86_64" for kind in ("_2_28", "_2_27", "_2_17", "2014", "1")]
# Of packages: what nothing here uses.
UNUSED = (
    *("faster_whisper/assets/*.onnx", "opencc/clib/bin", "opencc/clib/lib64", "sqlalchemy/testing", "bin"),
    *("**/*_avx2*", "**/*.pyi", "**/*.pyx", "**/*.pxd", "**/*.c", "**/*.h", "**/*.a", "*.dist-info/sboms"),
    *("silero_vad/data/*.jit", "silero_vad/data/*.safetensors", "silero_vad/data/*_half.onnx"),
    *("silero_vad/data/*_op1*.onnx", "silero_vad/data/*_openvino_*.onnx", "silero_vad/data/silero_vad.onnx"),
)


def pack(folder: Path) -> None:
    """Fetch the service's packages for Python 3.12 on x86-64, as small as they get."""
    with tempfile.TemporaryDirectory() as scratch:
        site = Path(scratch) / "site"
        platforms = [option for name in PLATFORMS for option in ("--platform", name)]
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--target", str(site)]
            + ["--only-binary=:all:", "--python-version", "3.12", "--implementation", "cp", *platforms]
            + [f"{name}=={version}" for name, version in sorted(needed().items())],
            check=True,
        )
        unused = [path for pattern in UNUSED for path in site.glob(pattern)]
        subprocess.run(["rm", "-rf", *map(str, unused)], check=True)
        # Some have more symbols for debuggers than code.
        libraries = [path for path in site.rglob("*.so*") if path.is_file()]
        subprocess.run(["strip", "--strip-all", *map(str, libraries)], check=True)
        filters = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 26}]
        for absent, name in ABSENT.items():
            with (
                lzma.open(folder / name / "packages.tar.xz", "wb", filters=filters) as compressed,
                tarfile.open(fileobj=compressed, mode="w|") as content,
            ):
                for path in sorted(site.iterdir()):
                    if path.name not in (absent, f"{absent}.libs"):
                        content.add(path, arcname=path.name)


def needed() -> dict[str, str]:
    """The service's packages and their needs, as they are installed here, without those that are present."""
    import tomllib
    from importlib.metadata import requires, version

    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    there = {"python_version": "3.12", "python_full_version": "3.12.0", "sys_platform": "linux"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    left = [Requirement(text) for text in (*project["dependencies"], *MORE)]
    found: dict[str, str] = {}

    def wanted(of: Requirement) -> Iterator[Requirement]:
        for need in map(Requirement, requires(of.name) or ()):
            if need.marker is None or any(
                need.marker.evaluate(there | {"extra": e}) for e in ("", *of.extras)
            ):
                yield need

    while left:
        requirement = left.pop()
        name = canonicalize_name(requirement.name)
        if name not in found and name not in PRESENT:
            found[name] = version(name)
            left += wanted(requirement)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Prepare a session, run one, or one group of its parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--prepare", type=Path, metavar="FOLDER", help="write what the other machine needs")
    parser.add_argument("--no-packages", action="store_true", help="prepare without them")
    parser.add_argument("--carried", type=Path, help="what was prepared")
    parser.add_argument("--out", type=Path, default=Path("gpu-session"))
    parser.add_argument("--minutes", type=float, default=8, help="all of it ends within this time")
    parser.add_argument("--groups", default=",".join(GROUPS), help="what is measured, in order")
    parser.add_argument("--parts", help="of these groups; default: all")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true", help="a check on tiny models")
    parser.add_argument("--models", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--group", choices=list(GROUPS), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.prepare:
        prepare(given.prepare, packages=not given.no_packages, small=given.small)
    elif given.group:
        session = Session(given.device, given.small, given.carried, given.models)
        run_group(given.group, given.parts.split(","), session, given.models / "results.json")
    elif given.carried:
        given.carried, given.out = given.carried.absolute(), given.out.absolute()
        given.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as models:
            Run(given, Path(models)).all_groups(given.groups.split(","))
        print((given.out / "session.md").read_text().partition("| part |")[0])
    else:
        parser.error("one of --prepare and --carried is needed")


if __name__ == "__main__":
    main()
