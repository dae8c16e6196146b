"""`whisperfleet usage`"""

import csv
import signal
from collections.abc import Mapping

from app.client.service import COMMAND, ServiceClient, connect
from app.commands.ending import command, run_until


@command()
def run_usage(server: str, api_key: str | None, query: Mapping[str, str], *, as_csv: bool) -> int:
    """Print how much was transcribed on a service, as `GET /v1/usage` says it. Returns the exit code."""
    text = run_until(_usage(server, api_key, query), signal.SIGTERM)
    if as_csv:
        print(text, end="")
        return 0
    rows = list(csv.reader(text.splitlines()))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print(*(cell.ljust(width) for cell, width in zip(row, widths, strict=True)), sep="  ")
    return 0


async def _usage(server: str, api_key: str | None, query: Mapping[str, str]) -> str:
    async with ServiceClient(connect(server, api_key, COMMAND), COMMAND) as service:
        asked = {name: value for name, value in query.items() if value} | {"format": "csv"}
        return (await service.attempt("GET", "v1/usage", params=asked)).text
