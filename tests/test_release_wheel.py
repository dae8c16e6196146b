"""The source archive and the wheel: complete, and usable without the source tree."""

import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

import httpx
import pytest

from tests.e2e.running import environment, free_port, wait_for

pytestmark = [pytest.mark.timeout(120), pytest.mark.server]

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGES = ("app", "workers")
DESCRIBED = ("README.md", "CHANGELOG.md", "LICENSE", "constraints.txt")


@dataclass(frozen=True)
class Built:
    source: Path  # the tree's files that the archive is made of
    archive: Path
    wheel: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Built:
    """What `make dist` builds of a copy of the tree."""
    source = tmp_path_factory.mktemp("release") / "source"
    for part, ignored in (*((package, ()) for package in PACKAGES), ("tests", ("data",))):
        shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__", *ignored))
    for part in ("Makefile", "pyproject.toml", "MANIFEST.in", *DESCRIBED):
        shutil.copy(ROOT / part, source)
    (source / ".venv").symlink_to(ROOT / ".venv")
    # Nothing is installed, although the copies of the files that say what are new.
    make = ["make", "--silent", "--old-file", ".venv/.installed", "dist"]
    made = subprocess.run(make, cwd=source, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    [archive] = (source / "dist").glob("*.tar.gz")
    [wheel] = (source / "dist").glob("*.whl")
    return Built(source, archive, wheel)


def files_of_packages(source: Path) -> set[str]:
    return {
        path.relative_to(source).as_posix()
        for package in PACKAGES
        for path in (source / package).rglob("*")
        if path.is_file()
    }


def test_the_source_archive_has_what_builds_and_describes_the_wheel(built: Built) -> None:
    with tarfile.open(built.archive) as archive:
        names = {name.partition("/")[2] for name in archive.getnames() if archive.getmember(name).isfile()}
    generated = {name for name in names if name.startswith("whisperfleet.egg-info/")} | {
        "PKG-INFO",
        "setup.cfg",
    }
    assert names - generated == files_of_packages(built.source) | {
        "pyproject.toml",
        "MANIFEST.in",
        *DESCRIBED,
    }


def test_the_wheel_built_from_it_has_every_file_of_the_packages(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        packaged = {name for name in wheel.namelist() if ".dist-info/" not in name}
        assert packaged == files_of_packages(built.source)
        assert all(wheel.read(name) == (built.source / name).read_bytes() for name in packaged)
    assert {"app/py.typed", "app/database/migrations/env.py", "workers/demo_model/model.bin"} <= packaged
    assert {"app/web/index.html", "app/web/bundle/main.js"} <= packaged
    assert not [name for name in packaged if ".test." in name]


def test_the_wheel_names_and_has_all_licences(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        info = f"whisperfleet-{PROJECT['version']}.dist-info"
        licences = {name: wheel.read(f"{info}/licenses/{name}").decode() for name in PROJECT["license-files"]}
        metadata = message_from_bytes(wheel.read(f"{info}/METADATA"))
    assert metadata["License-Expression"] == PROJECT["license"]
    assert "MIT License" in licences["LICENSE"]
    assert "tus-js-client" in licences["app/web/vendor/LICENSES.txt"]
    assert "UNICODE LICENSE V3" in licences["app/transcript/lexicon/LICENSE-Unicode.txt"]


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory) -> Path:
    """An environment with the wheel and the product's dependencies, which does not see the source tree."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    [site] = folder.glob("lib/python3*/site-packages")
    # Packages of this path are found, but its own .pth file, which names the source tree, is not read.
    (site / "dependencies.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n")
    install = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--no-index"]
    subprocess.run(
        [*install, "--no-deps", "--ignore-installed", built.wheel], check=True, capture_output=True
    )
    return folder / "bin"


def run(installed: Path, folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    (folder / "home").mkdir(exist_ok=True)
    settings = environment(folder, WHISPER_GPUS="0")
    return subprocess.run(
        [installed / "whisperfleet", *arguments],
        cwd=folder,
        env=settings,
        capture_output=True,
        text=True,
        timeout=90,
    )


@pytest.mark.soak
def test_the_installed_program_comes_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    code = "import app, workers; print(app.__file__, workers.__file__)"
    found = subprocess.run([installed / "python", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert [Path(path).is_relative_to(installed.parent) for path in found.stdout.split()] == [True, True]
    printed = run(installed, tmp_path, "--version")
    assert (printed.returncode, printed.stdout) == (0, f"whisperfleet {PROJECT['version']}\n")


@pytest.mark.soak
def test_the_installed_program_transcribes_and_passes_its_own_checks(installed: Path, tmp_path: Path) -> None:
    checked = run(installed, tmp_path, "doctor")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    done = run(installed, tmp_path, "transcribe", ROOT / "tests" / "data" / "short00.flac", "-o", "short.srt")
    assert done.returncode == 0, done.stderr
    assert "captain reads a long letter" in (tmp_path / "short.srt").read_text()
    without_tree = run(installed, tmp_path, "bench")
    assert (without_tree.returncode, without_tree.stdout) == (2, "")
    assert "not part of the installed package" in without_tree.stderr


@pytest.mark.soak
def test_the_installed_service_has_the_page(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    port = free_port()
    settings = environment(tmp_path, WHISPER_ENGINE="simulated", WHISPER_MODEL=None, WHISPER_GPUS=None)
    command = [installed / "whisperfleet", "serve", "--port", str(port)]
    with (tmp_path / "log").open("wb") as log:
        service = subprocess.Popen(
            command, cwd=tmp_path, env=settings | {"WHISPER_DEVICE": "cpu"}, stdout=log, stderr=log
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:

            def version() -> str | None:
                assert service.poll() is None, (tmp_path / "log").read_text()
                try:
                    return str(client.get("/health").json()["version"])
                except httpx.TransportError:
                    return None

            assert wait_for(version, 60) == PROJECT["version"]
            page = client.get("/")
            assert page.status_code == 200
            assert "main.js" in page.text
            assert client.get("/openapi.json").json()["info"]["version"] == PROJECT["version"]
    finally:
        service.terminate()
        service.wait(15)
