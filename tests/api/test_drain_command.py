"""`whisperfleet drain`, with a real server and a fake cluster."""

import os
import signal
import threading
from collections.abc import Callable

import pytest

from app.client import service
from app.commands import drain
from app.commands.drain import run_drain
from tests.api.test_nodes import NODES
from tests.api.waiting import wait_for

pytestmark = pytest.mark.timeout(30)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(drain, "_POLL_S", 0.02)
    monkeypatch.setattr(drain, "GIVE_UP_S", 0.05)
    monkeypatch.setattr(service, "_FIRST_PAUSE_S", 0.01)


@pytest.fixture
def cluster(site):
    site.service.fleet.cluster = NODES
    return site


def run(site, node="gpu-1", *, key=None, timeout_s=None, undo=False):
    return run_drain(node, site.url, key, timeout_s=timeout_s, undo=undo)


@pytest.fixture
def once_drained(cluster):
    """Does something in another thread, as soon as the command has drained a node and asks how far it is."""
    asks = threading.Event()
    threads = []

    def drain_node(name, *, undo=False):
        if cluster.service.fleet.drained:
            asks.set()
        return type(cluster.service.fleet).drain_node(cluster.service.fleet, name, undo=undo)

    def later(action: Callable[[], object]) -> None:
        def wait_and_act() -> None:
            assert asks.wait(10)
            action()

        cluster.service.fleet.drain_node = drain_node
        threads.append(threading.Thread(target=wait_and_act))
        threads[-1].start()

    yield later
    for thread in threads:
        thread.join()


def test_it_waits_until_the_workers_have_ended(cluster, once_drained, capsys):
    once_drained(lambda: setattr(cluster.service.fleet, "workers_of_nodes", ()))
    assert run(cluster) == 0
    first, last = capsys.readouterr().err.splitlines()
    assert first == "node gpu-1 still has workers: 0 (draining), 1 (draining)"
    assert last.startswith("node gpu-1 is drained after ")


def test_a_drained_node_and_one_that_leaves_are_drained(cluster, once_drained, capsys):
    once_drained(lambda: setattr(cluster.service.fleet, "cluster", NODES[1:]))
    assert run(cluster) == 0
    cluster.service.fleet.workers_of_nodes = ()
    assert run(cluster, "gpu-2") == 0
    assert "still" not in capsys.readouterr().err.splitlines()[-1]


def test_a_service_that_restarts_meanwhile_drains_the_node_again(cluster, once_drained, capsys):
    def restart() -> None:
        cluster.service.fleet.drained.clear()
        wait_for(lambda: cluster.service.fleet.drained)
        cluster.service.fleet.workers_of_nodes = ()

    once_drained(restart)
    assert run(cluster) == 0
    assert cluster.service.fleet.drained == {NODES[0].id}


def test_the_time_is_limited(cluster, capsys):
    assert run(cluster, timeout_s=0.2) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == (
        "whisperfleet: after 0.2 s, node gpu-1 still has workers: 0 (draining), 1 (draining); it goes on "
        "draining without this command"
    )


@pytest.mark.parametrize("node", ["gpu-9", "", " ", "gpu/1", "../jobs"])
def test_a_wrong_node_is_wrong_usage(cluster, node, capsys):
    assert run(cluster, node) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert ("Its nodes: 10.0.0.3, gpu-1, gpu-2." if node.strip() else "NODE is empty") in line
    assert not cluster.service.fleet.drained


@pytest.mark.parametrize(("value", "message"), [(0.0, "--timeout must be above 0"), (-1.0, "--timeout")])
def test_a_wrong_time_limit(cluster, value, message, capsys):
    assert run(cluster, timeout_s=value) == 2
    assert message in capsys.readouterr().err


def test_a_service_that_is_away(capsys):
    for timeout_s in (None, 30.0):
        code = run_drain("gpu-1", "http://127.0.0.1:9", None, timeout_s=timeout_s, undo=False)
        assert code == 1
        assert (
            "http://127.0.0.1:9/ cannot be reached: nothing listens there. Start it"
            in capsys.readouterr().err
        )


def test_a_service_with_another_engine(site, capsys):
    assert run(site) == 2
    assert "WHISPER_ENGINE=ray" in capsys.readouterr().err


def test_the_key(serve, capsys):
    locked = serve(api_keys=("sk-key",))
    locked.service.fleet.cluster, locked.service.fleet.workers_of_nodes = NODES, ()
    assert run(locked) == 1
    assert "WHISPER_API_KEY" in capsys.readouterr().err
    assert run(locked, key="sk-key") == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_waiting_and_not_the_draining(cluster, once_drained, number, code, capsys):
    once_drained(lambda: os.kill(os.getpid(), number))
    # A shell's background jobs, and so this test in one, ignore SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert run(cluster) == code
    finally:
        signal.signal(signal.SIGINT, before)
    assert "the node goes on draining" in capsys.readouterr().err.splitlines()[-1]
    assert cluster.service.fleet.drained == {NODES[0].id}


def test_undo(cluster, capsys):
    cluster.service.fleet.drained.add(NODES[0].id)
    assert run(cluster, undo=True) == 0
    assert not cluster.service.fleet.drained
    assert capsys.readouterr().err == "node gpu-1 gets workers again\n"
    assert run(cluster, "gpu-9", undo=True) == 2
