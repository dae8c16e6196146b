"""What a slot does when its device runs out of memory: smaller batches, then a smaller compute type. Pure.

The memory may have been short for a moment only, so each limit is raised again after a while. If that is too
early, the next attempt comes after twice the time.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from app.common.known_errors import explain

USUAL_BEAMS = 5  # the default of requests, for which the batch size in the settings is meant
_FIRST_WAIT_S = 60.0  # before a limit is doubled
_FIRST_RESTART_S = 600.0  # before a larger compute type is tried, for which the worker restarts
_MAX_WAIT_S = 3600.0


@dataclass(slots=True)
class _BatchLimit:
    """The limit for one width of the search: clips in a batch."""

    clips: int
    wait_s: float
    raise_at: float
    was_raised: bool = False


@dataclass(slots=True)
class _ComputeType:
    """The compute type of one model: in the settings, and in use."""

    configured: str
    used: str
    wait_s: float
    restore_at: float
    is_restored: bool = False  # the model is loaded as configured again


class OomFallback:
    """How large a slot's batches may be, and with which compute type it loads each model.

    A clip takes memory for each of its beams, so limits depend on them: a request with a wide search does not
    make the batches of the others smaller.
    """

    def __init__(self, batch_size: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`batch_size`: clips in a batch at `USUAL_BEAMS`. `clock` returns seconds."""
        self.batch_size = batch_size  # less once a worker has less memory
        self._clock = clock
        self._limits: dict[int, _BatchLimit] = {}  # by number of beams
        self.lowered: dict[str, _ComputeType] = {}  # compute types, by model
        self._reason = ""

    def batch_limit(self, beams: int = USUAL_BEAMS) -> int:
        """How many clips of so many beams may be in a batch."""
        most = self._most(beams)
        if not self._limits:
            return most
        self._raise_limits()
        rows = [limit.clips * width for width, limit in self._limits.items() if width <= beams]
        return max(1, min([most, *(count // beams for count in rows)]))

    def compute_type(self, model: str, configured: str) -> str:
        """The compute type to load a model with, for which the settings say `configured`."""
        lowered = self.lowered.get(model)
        return configured if lowered is None or self._may_be_restored(lowered) else lowered.used

    def loaded(self, model: str, compute_type: str) -> None:
        """A model was loaded with a type that `compute_type` has said, perhaps a while ago."""
        lowered = self.lowered.get(model)
        if lowered is not None:
            lowered.is_restored = compute_type == lowered.configured

    def wants_restart(self, held: Mapping[str, str]) -> bool:
        """Whether a model is held with a smaller compute type than may fit by now.

        `held`: the models in the process's memory, and the types with which they were loaded.
        """
        return any(
            self._may_be_restored(lowered) and held.get(model, lowered.configured) != lowered.configured
            for model, lowered in self.lowered.items()
        )

    def halve(self, clips: int, beams: int, error: Exception) -> None:
        """A batch of so many clips, of so many beams each, ran out of memory."""
        before = self._limits.get(beams)
        wait_s = _FIRST_WAIT_S
        if before is not None:
            wait_s = min(2 * before.wait_s, _MAX_WAIT_S) if before.was_raised else before.wait_s
        fewest = max(1, min(self.batch_limit(beams), clips // 2))
        self._limits[beams] = _BatchLimit(fewest, wait_s, self._clock() + wait_s)
        self._reason = explain(error)

    def step_down(self, model: str, configured: str, used: str, smaller: str, error: Exception) -> None:
        """A model ran out of memory with the compute type `used`: use a smaller one from now on."""
        before = self.lowered.get(model)
        wait_s = _FIRST_RESTART_S
        if before is not None:
            too_early = used == configured  # it was tried again
            wait_s = min(2 * before.wait_s, _MAX_WAIT_S) if too_early else before.wait_s
        self.lowered[model] = _ComputeType(configured, smaller, wait_s, self._clock() + wait_s)
        self._reason = explain(error)

    def explain(self, held: Mapping[str, str] = MappingProxyType({})) -> str | None:
        """What differs from the settings, and why; None if nothing does. `held`: see `wants_restart`."""
        self._raise_limits()
        changes = []
        for beams in sorted({USUAL_BEAMS, *self._limits}):
            if (limit := self.batch_limit(beams)) < self._most(beams):
                width = "" if beams == USUAL_BEAMS else f" with {beams} beams"
                changes.append(f"batches of {limit} instead of {self._most(beams)}{width}")
        for model, lowered in self.lowered.items():
            if held.get(model, self.compute_type(model, lowered.configured)) != lowered.configured:
                changes.append(f"{model} in {lowered.used} instead of {lowered.configured}")
        return f"Memory was short, so {', '.join(changes)}: {self._reason}" if changes else None

    def _may_be_restored(self, lowered: _ComputeType) -> bool:
        return lowered.is_restored or self._clock() >= lowered.restore_at

    def _most(self, beams: int) -> int:
        return max(1, min(self.batch_size, self.batch_size * USUAL_BEAMS // beams))

    def _raise_limits(self) -> None:
        """Double the limits whose time has come; forget those that did not fail again at their highest."""
        now = self._clock()
        for beams, limit in list(self._limits.items()):
            while now >= limit.raise_at:
                if limit.clips >= self._most(beams):
                    del self._limits[beams]
                    break
                limit.clips = min(2 * limit.clips, self._most(beams))
                limit.raise_at += limit.wait_s
                limit.was_raised = True
