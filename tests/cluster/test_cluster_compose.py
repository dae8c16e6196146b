"""The compose profiles `cluster` and `cluster-cpu`. No container engine is needed."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.settings import Settings
from tests.cluster import ray_ports
from tests.cluster.commands_of_containers import Run, run
from tests.test_containers import COMPOSE, DOCKERFILE, PROJECT, ROOT, environment, instructions

SERVICES: dict[str, Any] = COMPOSE["services"]
NODES = ("head", "worker", "worker-cpu")
ALL = (*NODES, "front")
TOKEN = {"RAY_AUTH_TOKEN": "0123456789abcdef0123456789abcdef"}


def command(service: str) -> list[str]:
    """What a container runs, as Compose passes it on."""
    entrypoint: list[str] = SERVICES[service]["entrypoint"]
    return [word.replace("$$", "$") for word in entrypoint]


def started(service: str, folder: Path) -> tuple[Run, dict[str, str]]:
    """The command of a service with a token, and the options of its `ray start`."""
    ran = run(command(service), folder, **TOKEN)
    line = next(line for line in ran.calls if line.startswith("ray start"))
    return ran, ray_ports.options(line)


@pytest.mark.parametrize("service", ALL)
def test_all_have_one_image_with_ray(service: str) -> None:
    build = SERVICES[service]["build"]
    assert SERVICES[service]["image"] == "whisperfleet:cluster"
    assert ROOT / build["context"] / build["dockerfile"] == DOCKERFILE
    extras = build["args"]["EXTRAS"].split(",")
    assert "ray" in extras
    assert set(extras) <= set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("service", ALL)
def test_ray_asks_for_the_token_and_sends_no_statistics(service: str) -> None:
    given = SERVICES[service]["environment"]
    assert given["RAY_AUTH_MODE"] == "token"
    assert given["RAY_AUTH_TOKEN"] == "${RAY_AUTH_TOKEN:-}", "other profiles need none"
    assert given["RAY_USAGE_STATS_ENABLED"] == "0"
    assert (
        given.get("OTEL_SDK_DISABLED") == "true" or "OTEL_SDK_DISABLED=true ray start" in command(service)[2]
    )


@pytest.mark.parametrize("service", ALL)
def test_without_a_token_nothing_starts(service: str, tmp_path: Path) -> None:
    for number, variables in enumerate(({}, {"RAY_AUTH_TOKEN": ""})):
        ran = run(command(service), tmp_path / str(number), **variables)
        assert ran.returncode != 0
        assert not ran.calls
        assert "RAY_AUTH_TOKEN: is missing: docs/cluster.md says how" in ran.errors


@pytest.mark.parametrize("service", NODES)
def test_a_node_is_the_first_process_of_its_container(service: str, tmp_path: Path) -> None:
    """So it gets SIGTERM, and drains."""
    ran, options = started(service, tmp_path)
    assert ran.returncode == 0
    assert "block" in options
    assert f"exec ray start {'--head' if service == 'head' else '--address'}" in command(service)[2]


@pytest.mark.parametrize("service", ALL)
def test_ports_are_fixed(service: str, tmp_path: Path) -> None:
    _, options = started(service, tmp_path)
    ray_ports.check(options, head=service == "head")
    if service == "head":
        assert ray_ports.HEAD.items() <= options.items()
    else:
        assert (
            options["address"]
            == f"head:{ray_ports.HEAD['port']}"
            == environment("front")["WHISPER_RAY_ADDRESS"]
        )


def test_a_worker_without_a_driver_does_not_start(tmp_path: Path) -> None:
    ran = run(command("worker"), tmp_path, DRIVER="9", **TOKEN)
    assert ran.returncode == 9
    assert ran.calls == ["nvidia-smi -L"]


def test_the_service_starts_beside_a_node_that_offers_nothing_and_is_started_again(tmp_path: Path) -> None:
    ran, options = started("front", tmp_path)
    assert ran.returncode == 0
    assert (options["num-cpus"], options["num-gpus"]) == ("0", "0")
    assert "whisperfleet serve" in ran.calls
    assert sum(call.startswith("ray start") for call in ran.calls) >= 2


def test_the_service_gets_its_settings_as_without_a_cluster() -> None:
    assert set(environment("front")) == {f"WHISPER_{name.upper()}" for name in Settings.model_fields}
    fixed = {name[8:].lower(): value for name, value in environment("front").items() if value is not None}
    settings = Settings(**fixed, _env_file=None)  # type: ignore[arg-type]
    assert (settings.engine, settings.ray_insecure) == ("ray", False)
    assert set(SERVICES["front"]["volumes"]) == set(SERVICES["gpu"]["volumes"])
    assert "healthcheck" not in SERVICES["front"], "the image's"


@pytest.mark.parametrize("service", NODES)
def test_nodes_get_no_settings_and_no_data_of_the_service(service: str) -> None:
    assert "env_file" not in SERVICES[service]
    assert not environment(service)
    assert not [volume for volume in SERVICES[service]["volumes"] if volume.startswith("data:")]
    mounted = {volume.rpartition(":")[2] for volume in SERVICES[service]["volumes"]} | {"/data"}
    assert mounted == set(json.loads(instructions("VOLUME")[0]))
    assert any(mount.startswith("/data:uid=1000,") for mount in SERVICES[service]["tmpfs"])


def test_the_ports_of_ray_are_in_a_network_without_a_way_out() -> None:
    assert COMPOSE["networks"]["ray"] == {"internal": True}
    assert SERVICES["head"]["networks"] == ["ray"]
    for name in ("worker", "worker-cpu"):
        assert SERVICES[name]["networks"] == ["ray", "internet"]
    assert set(SERVICES["front"]["networks"]) == {"default", "ray"}
    others = [name for name in SERVICES if name not in ALL]
    assert not [name for name in others if {"ray", "internet"} & set(SERVICES[name].get("networks", ()))]


def test_shared_memory_holds_the_object_store(tmp_path: Path) -> None:
    for service in ALL:
        _, options = started(service, tmp_path / service)
        megabytes = int(SERVICES[service]["shm_size"].removesuffix("m"))
        assert megabytes * 2**20 > 1.1 * int(options["object-store-memory"])


def test_a_node_has_time_to_drain() -> None:
    for service in ("worker", "worker-cpu"):
        drain_s = float(SERVICES[service]["environment"]["RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"])
        assert drain_s + 5 <= int(SERVICES[service]["stop_grace_period"].removesuffix("s"))


@pytest.mark.parametrize(("service", "port"), [("head", "port"), ("worker", "node-manager-port")])
def test_a_health_check_connects_to_the_port_of_ray(service: str, port: str, tmp_path: Path) -> None:
    _, options = started(service, tmp_path)
    _, _, *arguments = SERVICES[service]["healthcheck"]["test"]
    assert f"('127.0.0.1', {options[port]})" in arguments[-1]
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
        assert _healthy(arguments, options[port], free)
    assert not _healthy(arguments, options[port], free)


def _healthy(arguments: list[str], port: str, instead: int) -> bool:
    *flags, program = arguments
    done = subprocess.run(
        [sys.executable, *flags, program.replace(port, str(instead))], stderr=subprocess.DEVNULL, timeout=30
    )
    return done.returncode == 0
