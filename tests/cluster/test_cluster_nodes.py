"""Nodes that must not have workers are left out, with one line."""

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.common.errors import ClusterUnavailable, ModelUnavailable, ProcessLost
from app.engines.catalogue import ModelCatalogue
from app.engines.cluster import node_checks
from app.engines.cluster.cluster_node import ClusterNode
from app.engines.model_files import DEMO_PATH
from app.pool.cluster.ray_messages import FoundModel, NodeReport, RayNode
from tests.cluster.fake_bridge import FakeBridge
from workers.messages import LoadOptions

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

NODE = RayNode("a", "rack-7", "127.0.0.1", cpus=2)
INSPECT, FIND = node_checks.inspect, node_checks.find_model


def catalogue() -> ModelCatalogue:
    names = {"demo": DEMO_PATH, str(DEMO_PATH): DEMO_PATH}
    options = {name: LoadOptions(name, str(path), "cpu", "int8", 1) for name, path in names.items()}
    return ModelCatalogue("demo", 99, options)


def new_node(bridge: FakeBridge, answers: dict[Callable[..., Any], Callable[..., Any]]) -> ClusterNode:
    bridge.list_nodes([NODE])
    bridge.answers = {(NODE.id, function): answer for function, answer in answers.items()}
    connected = asyncio.Event()
    connected.set()
    return ClusterNode(bridge, NODE, catalogue(), connected)


async def fault_of(node: ClusterNode) -> str:
    with pytest.raises(ClusterUnavailable) as raised:
        await node.check()
    assert "\n" not in raised.value.message
    return raised.value.message


async def test_a_node_like_this_machine_may_have_workers() -> None:
    bridge = FakeBridge()
    node = new_node(bridge, {})
    await asyncio.gather(*(node.check() for _ in range(8)))
    await node.check()
    assert [function for _, function in bridge.calls] == [INSPECT, FIND], "asked once for all slots"
    assert node.path("demo") == str(DEMO_PATH)
    assert node.path("other") == ""


async def test_other_versions_leave_a_node_out() -> None:
    report = NodeReport(node_checks.versions() | {"ray": "2.1.0"}, 0.0)
    node = new_node(FakeBridge(), {INSPECT: lambda: report})
    fault = await fault_of(node)
    assert fault.startswith("node rack-7 is left out: its versions differ: ray 2.1.0 (here 2.")


async def test_a_node_without_the_model_is_left_out_and_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(name: str) -> FoundModel:
        raise ModelUnavailable("The model 'demo' is not here, and HF_HUB_OFFLINE is set")

    bridge = FakeBridge()
    node = new_node(bridge, {FIND: offline})
    faults = await asyncio.gather(*(fault_of(node) for _ in range(8)))
    assert set(faults) == {"node rack-7 is left out: The model 'demo' is not here, and HF_HUB_OFFLINE is set"}
    assert len(bridge.calls) == 2, "asked once for all slots"
    bridge.answers.clear()
    await fault_of(node)
    monkeypatch.setattr("app.engines.cluster.cluster_node._RECHECK_S", 0.0)
    node = new_node(bridge, {FIND: offline})
    await fault_of(node)
    bridge.answers.clear()
    await node.check()
    assert node.path("demo") == str(DEMO_PATH)


async def test_a_node_with_other_files_of_the_model_is_left_out(tmp_path: Path) -> None:
    shutil.copytree(DEMO_PATH, copy := tmp_path / "demo")
    (copy / "config.json").write_text("{}")
    node = new_node(FakeBridge(), {FIND: lambda name: node_checks.found_model(copy)})
    assert "config.json 2 bytes (here " in await fault_of(node)


async def test_a_failing_check_leaves_a_node_out() -> None:
    def broken() -> NodeReport:
        raise OSError("Input/output error")

    assert "Input/output error" in await fault_of(new_node(FakeBridge(), {INSPECT: broken}))


async def test_a_node_that_is_gone_is_not_at_fault() -> None:
    bridge = FakeBridge()
    node = new_node(bridge, {})
    bridge.list_nodes([])
    with pytest.raises(ProcessLost):
        await node.check()
    bridge.list_nodes([NODE])
    await node.check()


async def test_another_model_is_found_when_it_is_needed() -> None:
    bridge = FakeBridge()
    node = new_node(bridge, {})
    await node.check()
    await node.find(str(DEMO_PATH))
    await node.find(str(DEMO_PATH))
    assert [function for _, function in bridge.calls] == [INSPECT, FIND, FIND]
    assert node.path(str(DEMO_PATH)) == str(DEMO_PATH)


async def test_simulated_workers_need_no_model() -> None:
    bridge = FakeBridge()
    node = new_node(bridge, {})
    node._catalogue.options["demo"] = replace(node._catalogue.options["demo"], path="")
    await node.check()
    assert [function for _, function in bridge.calls] == [INSPECT]
