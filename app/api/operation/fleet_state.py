"""The fleet as its clients know it, and the events that bring them up to date. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.engines.ledger import KEPT_S, Block

Row = Mapping[str, Any]  # of a worker, as `GET /v1/workers` shows it

_COUNTERS = ("batches", "clips", "audio_s")  # change with every batch
_COUNTERS_S = 2.0  # between two events for counters alone, at least
_QUEUE_S = 1.0  # between two events for the queue, at least


class FleetEvent(NamedTuple):
    """The name of a server-sent event, and its data."""

    name: str
    data: dict[str, Any]


class FleetState:
    """The fleet as of the last events. All clients have the same state, a new one by a snapshot."""

    def __init__(self, last_block: int = 0) -> None:
        """`last_block`: the id of the newest block that the first snapshot has."""
        self.last_block = last_block
        self._rows: dict[int, Row] = {}
        self._sent_at: dict[int, float] = {}  # by slot
        self._queue: dict[str, Any] = {}
        self._queue_sent_at = 0.0

    def update(
        self, now: float, rows: Sequence[Row], blocks: Sequence[Block], queue: dict[str, Any]
    ) -> list[FleetEvent]:
        """The events for what has changed, at the time `now`. `blocks`: those after `last_block`."""
        events = []
        changed = [row for row in rows if self._is_due(now, row)]
        removed = sorted(self._rows.keys() - {row["slot"] for row in rows})
        for row in changed:
            self._rows[row["slot"]] = row
            self._sent_at[row["slot"]] = now
        for slot in removed:
            del self._rows[slot], self._sent_at[slot]
        if changed or removed:
            data = {"time": round(now, 3), "workers": changed, "removed": removed}
            events.append(FleetEvent("workers", data))
        if blocks:
            self.last_block = blocks[-1].id
            events.append(
                FleetEvent("block", {"time": round(now, 3), "blocks": [block.public() for block in blocks]})
            )
        if queue != self._queue and now - self._queue_sent_at >= _QUEUE_S:
            self._queue, self._queue_sent_at = queue, now
            events.append(FleetEvent("queue", {"time": round(now, 3), "queue": queue}))
        return events

    def snapshot(self, now: float, blocks: Sequence[Block]) -> tuple[dict[str, Any], list[Block]]:
        """The data of the event `fleet` without its blocks, and these. `blocks`: all that are kept."""
        rows = [self._rows[slot] for slot in sorted(self._rows)]
        recent = [block for block in blocks if block.id <= self.last_block and block.end >= now - KEPT_S]
        return {"time": round(now, 3), "workers": rows, "queue": self._queue}, recent

    def _is_due(self, now: float, row: Row) -> bool:
        """Whether clients should get a row now."""
        known = self._rows.get(row["slot"])
        if known is None or any(row[name] != known[name] for name in row if name not in _COUNTERS):
            return True
        return row != known and now - self._sent_at[row["slot"]] >= _COUNTERS_S
