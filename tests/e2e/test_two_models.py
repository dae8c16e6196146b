"""Two models on two workers: each is loaded on first use, and unloaded when idle."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from app.engines.model_files import DEMO_PATH
from tests.e2e.fixtures import Commands
from tests.e2e.running import Server, wait_for

pytestmark = pytest.mark.timeout(120)

IDLE_S = 8  # on a busy machine, no model is unloaded between two requests
MODEL_BYTES = 50 << 20  # at least, of the memory of a worker


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The demo model under another name."""
    return str(shutil.copytree(DEMO_PATH, tmp_path_factory.mktemp("models") / "second"))


@pytest.fixture(scope="module")
def with_two(module_commands: Commands, second: str) -> Server:
    return module_commands.ready(WHISPER_MODELS=second, WHISPER_MODEL_IDLE_S=IDLE_S)


def test_each_model_is_loaded_once_on_each_worker_and_unloaded_when_idle(with_two, second, shorts):
    server = with_two
    assert states(server, second) == {"demo": "loaded", second: "unloaded"}
    assert {row["loads"] for row in server.workers()} == {1}

    expected = [server.text(path) for path in shorts]
    with ThreadPoolExecutor(8) as clients:
        requests = [(path, model) for path in shorts * 2 for model in ("demo", second)]
        texts = list(clients.map(lambda one: server.text(one[0], model=one[1]), requests))
    assert texts == [text for text in expected * 2 for _ in range(2)]
    assert all(row["loads"] <= 2 for row in server.workers())
    assert states(server, second) == {"demo": "loaded", second: "loaded"}
    with_both = memory(server)

    wait_for(lambda: states(server, second) == {"demo": "loaded", second: "unloaded"}, IDLE_S + 60)
    assert all(row["models"] == ["demo"] for row in server.workers())
    wait_for(lambda: memory(server) < with_both - 2 * MODEL_BYTES)
    assert server.text(shorts[0], model=second) == expected[0]
    assert sum(row["restarts"] for row in server.workers()) == 0


def states(server, second):
    listed = server.client.get("/v1/models").json()["data"]
    return {model["id"]: model["state"] for model in listed if model["id"] in ("demo", second)}


def memory(server):
    return sum(psutil.Process(row["pid"]).memory_info().rss for row in server.workers())
