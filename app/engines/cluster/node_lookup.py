"""Finds the node that a user names. Pure."""

from collections.abc import Sequence

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
