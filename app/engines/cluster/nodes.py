"""The nodes of a cluster: as users name them, and as `GET /v1/nodes` shows them. Pure."""

from collections.abc import Mapping, Sequence

from app.engines.cluster.messages import Node
from app.errors import AmbiguousNode, UnknownNode

NO_CLUSTER = (
    "This service has no nodes: its workers are on one machine. Nodes are those of a Ray cluster "
    "(WHISPER_ENGINE=ray)."
)
_MAX_SHOWN_CHARS = 100


def find_node(nodes: Sequence[Node], wanted: str) -> Node:
    """The node with this id or name.

    Raises UnknownNode, which lists the nodes that are there, and AmbiguousNode if several have the name.
    """
    for node in nodes:
        if node.id == wanted:
            return node
    named = [node for node in nodes if node.name == wanted]
    if len(named) == 1:
        return named[0]
    if named:
        ids = ", ".join(node.id for node in named)
        raise AmbiguousNode(f"{len(named)} nodes have the name {wanted!r}: name one by its id, {ids}.")
    there = ", ".join(sorted({node.name for node in nodes})) or "none"
    raise UnknownNode(
        f"The cluster has no node with the id or the name {wanted[:_MAX_SHOWN_CHARS]!r}. Its nodes: {there}."
    )


def node_row(
    node: Node, workers: Mapping[int, str], *, drains: bool, fault: str | None = None
) -> dict[str, object]:
    """A node as `GET /v1/nodes` shows it.

    `workers`: the states of its slots, by number. `drains`: it gets no more of them. `fault`: why it cannot
    have any.
    """
    state = "ready" if fault is None else "unusable"
    if drains:
        state = "draining" if workers else "drained"
    return {
        "object": "node",
        "id": node.id,
        "name": node.name,
        "address": node.address,
        "state": state,
        "fault": fault,
        "workers": [{"slot": slot, "state": workers[slot]} for slot in sorted(workers)],
    }
