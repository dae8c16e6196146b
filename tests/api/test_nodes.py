"""The nodes of a Ray cluster: their list, and draining them."""

from urllib.parse import quote

import pytest

from app.pool.cluster.ray_messages import RayNode

NODES = (
    RayNode("ab12", "gpu-1", "10.0.0.1", gpus=2),
    RayNode("cd34", "gpu-2", "10.0.0.2", gpus=2),
    RayNode("ef56", "10.0.0.3", "10.0.0.3", cpus=8),
)


def row(node, state="ready", worker_state="busy"):
    return {
        "object": "node",
        "id": node.id,
        "name": node.name,
        "address": node.address,
        "state": state,
        "fault": None,
        "workers": [{"slot": 0, "state": worker_state}, {"slot": 1, "state": worker_state}],
    }


def test_the_nodes_are_listed(site):
    assert site.client.get("/v1/nodes").json() == {"object": "list", "data": []}
    site.service.fleet.cluster = NODES
    assert site.client.get("/v1/nodes").json() == {"object": "list", "data": [row(node) for node in NODES]}


@pytest.mark.parametrize("node", [NODES[0].id, NODES[0].name])
def test_a_node_is_drained_as_often_as_one_likes_and_used_again(site, node):
    site.service.fleet.cluster = NODES
    for _ in range(2):
        answer = site.client.post(f"/v1/nodes/{node}/drain")
        assert answer.status_code == 202
        assert answer.json() == row(NODES[0], "draining", "draining")
    assert site.client.get("/v1/nodes").json()["data"][1:] == [row(node) for node in NODES[1:]]
    for _ in range(2):
        answer = site.client.delete(f"/v1/nodes/{node}/drain")
        assert (answer.status_code, answer.json()) == (200, row(NODES[0]))


@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize("name", ["gpu-3", "gpu", "..%2F", "%00", "ä" * 3000])
def test_an_unknown_node_names_those_that_are_there(site, method, name):
    site.service.fleet.cluster = NODES
    answer = site.client.request(method, f"/v1/nodes/{quote(name, safe='%')}/drain")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (404, "node_not_found")
    assert error["message"].endswith("Its nodes: 10.0.0.3, gpu-1, gpu-2.")
    assert len(error["message"]) < 300


def test_a_name_of_several_nodes_is_refused_with_their_ids(site):
    twin = RayNode("0099", "gpu-1", "10.0.0.9")
    site.service.fleet.cluster = (*NODES, twin)
    answer = site.client.post("/v1/nodes/gpu-1/drain")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "ambiguous_node")
    assert "ab12, 0099" in answer.json()["error"]["message"]
    assert not site.service.fleet.drained
    assert site.client.post("/v1/nodes/0099/drain").status_code == 202
    assert site.service.fleet.drained == {"0099"}


def test_other_engines_have_no_nodes(site):
    answer = site.client.post("/v1/nodes/gpu-1/drain")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "node_not_found")
    assert "WHISPER_ENGINE=ray" in answer.json()["error"]["message"]


def test_no_page_of_another_site_can_drain_a_node(site):
    site.service.fleet.cluster = NODES
    foreign = {"Origin": "https://page.example"}
    assert site.client.post("/v1/nodes/gpu-1/drain", headers=foreign).status_code == 403
    assert not site.service.fleet.drained
