"""What the service says if it cannot use Ray, or must not."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.clusters import RayCluster
from tests.cluster.services import ray_settings
from tests.e2e.fixtures import Commands
from tests.e2e.running import DATA, ONE_SIMULATED, Server, wait_for

pytestmark = pytest.mark.timeout(120)

# Run by Python itself when it starts, if its folder is on PYTHONPATH.
WITHOUT_RAY = """
from importlib.machinery import PathFinder

find_spec = PathFinder.find_spec
PathFinder.find_spec = lambda name, *others: None if name == "ray" else find_spec(name, *others)
"""


@pytest.fixture
def without_ray(tmp_path: Path) -> dict[str, Any]:
    """Settings of a service on a machine where Ray is not installed."""
    folder = tmp_path / "without_ray"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(WITHOUT_RAY)
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


def test_without_the_extra_the_engine_says_what_to_install(
    commands: Commands, without_ray: dict[str, Any]
) -> None:
    refused = commands.run("serve", **without_ray, WHISPER_ENGINE="ray", WHISPER_GPUS=None)
    assert refused.process.returncode == 2
    [line] = refused.stderr.splitlines()
    assert line.startswith("whisperfleet: WHISPER_ENGINE=ray: Ray is not installed; ")
    assert "`make install EXTRAS=ray`" in line


def test_without_the_extra_the_other_engines_work(commands: Commands, without_ray: dict[str, Any]) -> None:
    transcribed = commands.run("transcribe", DATA / "short00.flac", **without_ray, **ONE_SIMULATED)
    assert transcribed.process.returncode == 0, transcribed.stderr


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("0" * 32, "the Ray cluster at ADDRESS refuses the token of this machine: put the cluster's token"),
        ("", "there is no token for the Ray cluster at ADDRESS: put the cluster's token"),
    ],
    ids=["wrong", "missing"],
)
@pytest.mark.soak
def test_a_token_that_the_cluster_does_not_accept(
    ray_cluster: RayCluster, commands: Commands, token: str, reason: str
) -> None:
    server = commands.serve(**ray_settings(ray_cluster, RAY_AUTH_TOKEN=token)).wait_until_up()
    message = wait_for(lambda: refusal(server), 60, pause_s=0.2)
    assert message.startswith(reason.replace("ADDRESS", ray_cluster.address))
    assert "\n" not in message
    answer = server.post(DATA / "short00.flac")
    assert (answer.status_code, answer.json()["error"]["message"]) == (503, message)
    assert server.workers() == []
    assert server.end() == []
    assert "Traceback" not in server.stderr
    assert "0" * 32 not in server.stderr


def refusal(server: Server) -> str | None:
    """Why the service is not ready, once it has asked the cluster."""
    error = server.client.get("/ready").json()["error"]["message"]
    return None if error == "the cluster is being looked up" else str(error)
