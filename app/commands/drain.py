"""`whisperfleet drain`"""

import asyncio
import signal
import time
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from app.client.answers import Refused, json_object
from app.client.service import COMMAND, ServiceClient, connect
from app.commands.ending import command, run_until
from app.commands.progress import say
from app.common.errors import InvalidInput, WhisperfleetError

GIVE_UP_S = 60.0  # a service that does not answer for so long may be gone for good: the node is free to end
_POLL_S = 1.0


@command(stopped="stopped waiting; the node goes on draining")
def run_drain(node: str, server: str, api_key: str | None, *, timeout_s: float | None, undo: bool) -> int:
    """Drain a node and wait until its workers have ended; or undo that.

    Returns the exit code: 0 if they have, 1 if the service does not answer, or the time is over, 2 for wrong
    usage, such as an unknown node. A node that is drained already is drained.
    """
    if not node.strip():
        raise InvalidInput("NODE is empty: name a node's id or name, which `GET /v1/nodes` lists")
    if timeout_s is not None and timeout_s <= 0:
        raise InvalidInput("--timeout must be above 0")
    work = _undo(node, server, api_key) if undo else _drain(node, server, api_key, timeout_s)
    run_until(work, signal.SIGTERM)
    return 0


async def _drain(node: str, server: str, api_key: str | None, timeout_s: float | None) -> None:
    """Drain a node, and wait until it has no workers.

    Raises InvalidInput if it is unknown, and WhisperfleetError if that takes too long or the service is away.
    """
    began = time.monotonic()
    row: dict[str, Any] | None = None
    shown = ""
    async with _service(server, api_key) as service:
        try:
            async with asyncio.timeout(timeout_s):
                row = await _change(service, "POST", node)
                while row["workers"]:
                    if (line := _progress(row)) != shown:
                        say(shown := line)
                    await asyncio.sleep(_POLL_S)
                    # `GET` would not do: a service that has restarted does not know that the node drains, and
                    # lists none until it is connected.
                    try:
                        row = await _change(service, "POST", row["id"])
                    except InvalidInput:
                        break  # the node has left the cluster
        except TimeoutError:
            if row is None:
                raise WhisperfleetError(f"{service.name} did not answer within {timeout_s:g} s") from None
            raise WhisperfleetError(
                f"after {timeout_s:g} s, {_progress(row)}; it goes on draining without this command"
            ) from None
    say(f"node {node} is drained after {time.monotonic() - began:.1f} s")


async def _undo(node: str, server: str, api_key: str | None) -> None:
    async with _service(server, api_key) as service:
        row = await _change(service, "DELETE", node)
    say(f"node {row['name']} gets workers again")


def _service(server: str, api_key: str | None) -> ServiceClient:
    patience = replace(COMMAND, give_up_s=GIVE_UP_S)
    return ServiceClient(connect(server, api_key, patience), patience)


async def _change(service: ServiceClient, method: str, node: str) -> dict[str, Any]:
    """Drain a node or undo it; the node as the service answers it. Raises InvalidInput if it is unknown."""
    path = f"v1/nodes/{quote(node, safe='')}/drain"
    try:
        return json_object(await service.request(method, path, has="workers"))
    except Refused as error:
        if error.code in ("node_not_found", "ambiguous_node"):
            raise InvalidInput(error.message) from None
        raise WhisperfleetError(f"{service.name} cannot drain nodes: {error.message}") from None


def _progress(row: dict[str, Any]) -> str:
    workers = ", ".join(f"{worker['slot']} ({worker['state']})" for worker in row["workers"])
    return f"node {row['name']} still has workers: {workers}"
