"""docs/cluster.md: its commands start a cluster as they stand, and agree with what is shipped."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import yaml

from tests.cluster import ray_on_loopback, ray_ports
from tests.e2e.documentation import SHELL, Block, blocks, section
from tests.e2e.running import environment, free_port, wait_for
from tests.test_containers import COMPOSE, ROOT

PAGE = "docs/cluster.md"
LOOPBACK = "127.0.0.1"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
UNIT = (ROOT / "deploy" / "whisperfleet-ray.service").read_text(encoding="utf-8")
STARTS = [block for block in blocks(ROOT / PAGE) if "bin/ray start" in block.text]
# What each process of Ray has in its environment.
SHIPPED = {
    name: value
    for name, value in COMPOSE["services"]["worker"]["environment"].items()
    if name in ("RAY_AUTH_MODE", "RAY_USAGE_STATS_ENABLED", "OTEL_SDK_DISABLED")
}


def assignments(text: str) -> dict[str, str]:
    return dict(re.findall(r"\b([A-Z_]+)=([^\s\"]+)", text))


def test_every_start_has_the_ports_and_the_variables_that_are_shipped() -> None:
    assert len(STARTS) == 3
    assert len(SHIPPED) == 3
    for block in STARTS:
        options = ray_ports.options(block.text)
        assert set(options) <= ray_ports.known_options(), block.name
        assert ray_ports.NODE.items() <= options.items(), block.name
        assert "block" in options, "only then SIGTERM drains"
        assert SHIPPED.items() <= assignments(block.text).items(), block.name
        if "head" in options:
            assert ray_ports.HEAD["port"] == options["port"]
            assert options["include-dashboard"] == "false"
        else:
            assert options["address"].endswith(f":{ray_ports.HEAD['port']}")


def test_the_secrets_of_the_page_are_those_of_the_manifests() -> None:
    manifests = list(yaml.safe_load_all((ROOT / "deploy" / "kuberay.yaml").read_text()))
    named = set(re.findall(r"'(?:secretKeyRef|secret)': \{'(?:name|secretName)': '([\w-]+)'", str(manifests)))
    assert named == set(re.findall(r"create secret generic ([\w-]+)", TEXT))
    assert re.findall(r"--from-literal=(\w+)=", TEXT) == ["WHISPER_API_KEYS", "auth_token"]


def values(unit: str, key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", unit, re.MULTILINE)


def test_the_unit_starts_ray_as_the_page_does() -> None:
    [command] = values(UNIT, "ExecStart")
    assert command.startswith("/opt/whisperfleet/.venv/bin/ray start --block $RAY_NODE --")
    options = ray_ports.options(command.replace("$RAY_NODE ", ""))
    assert options == {"block": "", **ray_ports.NODE}
    given = assignments(" ".join(values(UNIT, "Environment")))
    assert SHIPPED.items() <= given.items()
    assert int(given["RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"]) + 20 <= int(values(UNIT, "TimeoutStopSec")[0])
    [file] = values(UNIT, "EnvironmentFile")
    nodes = re.findall(rf"```ini\n# {file}: .*\nRAY_AUTH_TOKEN=\S+\nRAY_NODE=(.*)\n```", TEXT)
    assert len(nodes) == 2
    for node in nodes:
        assert set(ray_ports.options(f"ray start {node}")) <= ray_ports.known_options()


def test_the_unit_is_as_safe_as_that_of_the_service_and_has_its_user() -> None:
    service = (ROOT / "deploy" / "whisperfleet.service").read_text(encoding="utf-8")
    _, _, hardening = service.partition("MemoryDenyWriteExecute.\n")
    assert hardening.partition("[Install]")[0] in UNIT
    for key in ("User", "Group", "StateDirectory", "StateDirectoryMode", "CacheDirectory", "UMask"):
        assert values(UNIT, key) == values(service, key), "the service opens Ray's sockets"
    ours, theirs = (assignments(" ".join(values(text, "Environment"))) for text in (UNIT, service))
    assert {name: ours[name] for name in ("HF_HOME", "CUDA_CACHE_PATH")}.items() <= theirs.items()
    # A /tmp of its own would hide the sockets.
    assert ours["RAY_TMPDIR"] == f"/var/cache/{values(service, 'CacheDirectory')[0]}"
    assert values(UNIT, "Restart") == ["always"], "a node ends with its head"


class Machines:
    """Three machines of the page, all of them this one, and what runs on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.http = free_port()
        self._ports = {"6379": str(free_port())}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        (folder / ".venv").symlink_to(sys.prefix)
        self._environ = environment(
            folder,
            HOME=folder,
            WHISPER_GPUS=None,
            WHISPER_PORT=self.http,
            WHISPER_SIMULATED="fixed_ms=10",
            RAY_TMPDIR=folder,
        )
        for name in [name for name in self._environ if name.startswith("RAY_AUTH")]:
            del self._environ[name]

    def run(self, block: Block, extra: str = "") -> None:
        """Run a block of commands that end."""
        command = ["bash", "-euo", "pipefail", "-c", self._here(block.text, extra)]
        subprocess.run(command, cwd=self.folder, env=self._environ, check=True, timeout=60)

    def start(self, name: str, block: Block, extra: str = "") -> None:
        """Run a block whose last command does not end."""
        text = re.sub(r"^(\.venv/bin/(?:ray start|whisperfleet serve))", r"exec \1", block.text, flags=re.M)
        with (self.folder / f"{name}.log").open("wb") as log:
            self._running[name] = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", self._here(text, extra)],
                cwd=self.folder,
                env=self._environ,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def signal(self, name: str, number: int) -> None:
        """Send a signal to what runs in the foreground of a terminal, and wait until it has ended."""
        process = self._running.pop(name)
        process.send_signal(number)
        process.wait(60)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def end(self) -> None:
        for name in reversed(list(self._running)):
            print(f"--- {name}\n{self.log(name)}")  # pytest shows it if a test fails
            process = self._running.pop(name)
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def open_to_all(self) -> list[Any]:
        """The ports that other machines could reach."""
        roots = [psutil.Process(started.pid) for started in self._running.values()]
        processes = [*roots, *(child for root in roots for child in root.children(recursive=True))]
        return [
            (process.name(), connection.laddr)
            for process in processes
            for connection in process.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN
            and not connection.laddr.ip.removeprefix("::ffff:").startswith("127.")
        ]

    def get(self, path: str) -> list[Any]:
        try:
            return list(httpx.get(f"http://127.0.0.1:{self.http}{path}", trust_env=False).json()["data"])
        except httpx.TransportError:
            return []

    def _here(self, text: str, extra: str) -> str:
        """The text for this machine alone: all addresses are its own, so each node has other ports."""
        for port in set(re.findall(r"-port=(63[89]\d|63\d\d)\b", text)) - {"6379"}:
            text = text.replace(port, str(free_port()))
        text = re.sub(r" --m(in|ax)-worker-port=\d+", "", text)
        for port, other in self._ports.items():
            text = text.replace(port, other)
        text = re.sub(r"10\.0\.0\.\d+", LOOPBACK, text)
        options = f"start --node-ip-address={LOOPBACK} --object-store-memory=100000000 {extra}"
        return text.replace(".venv/bin/ray start", f"{sys.executable} {ray_on_loopback.__file__} {options}")


@pytest.fixture
def machines() -> Iterator[Machines]:
    folder = Path(tempfile.mkdtemp(prefix="page-", dir=os.environ.get("TMPDIR", "/tmp")))
    made = Machines(folder)
    try:
        yield made
    finally:
        made.end()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_two_machines_in_ten_minutes(machines: Machines) -> None:
    """As a reader does it, step by step; with simulated workers, and a front end of its own in the end."""
    all_steps = section(PAGE, "Two machines in ten minutes")
    [token] = [block for block in all_steps if "auth_token" in block.text and block.reason is None]
    head, node, front = STARTS
    [serve] = [block for block in all_steps if "whisperfleet serve" in block.text]
    assert {block.language for block in (token, head, node, serve)} <= set(SHELL)

    machines.run(token)
    file = machines.folder / ".ray" / "auth_token"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    machines.start("head", head, "--num-cpus=0")
    wait_for(lambda: "Ray runtime started" in machines.log("head"), 60)
    machines.start("node", node, "--num-cpus=2")
    wait_for(lambda: "Ray runtime started" in machines.log("node"), 60)
    machines.start("serve", serve)
    wait_for(lambda: [row["state"] for row in machines.get("/v1/workers")] == ["idle"] * 2, 90)
    assert "FAIL" not in machines.log("serve"), "the doctor"
    assert "ok   node gpu-2: worker" in machines.log("serve")
    assert {row["node_name"] for row in machines.get("/v1/workers")} == {"gpu-2"}

    assert machines.open_to_all() == []

    machines.start("front", front)
    wait_for(lambda: {row["name"] for row in machines.get("/v1/nodes")} == {"gpu-1", "gpu-2", "front"}, 60)
    machines.signal("node", signal.SIGTERM)
    assert "Local node finished draining" in machines.log("node")
    wait_for(lambda: "gpu-2" not in {row["name"] for row in machines.get("/v1/nodes")}, 30)
    assert machines.get("/v1/workers") == []
    assert "node lost" not in machines.log("serve"), "it has been drained"
