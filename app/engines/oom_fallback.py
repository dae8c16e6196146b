"""What a slot does when its device runs out of memory: smaller batches, then a smaller compute type. Pure.

A limit that was lowered stays low until the service restarts.
"""

from app.known_errors import explain


class OomFallback:
    """How large a slot's batches may be, and with which compute type it loads each model."""

    def __init__(self, batch_size: int) -> None:
        self.batch_limit = batch_size
        self._batch_size = batch_size
        self._compute_types: dict[str, tuple[str, str]] = {}  # by model: the type in the settings, and in use
        self._reason = ""

    def compute_type(self, model: str, configured: str) -> str:
        """The compute type for a model for which the settings say `configured`."""
        return self._compute_types.get(model, ("", configured))[1]

    def halve(self, clips: int, error: Exception) -> None:
        """A batch of so many clips ran out of memory."""
        self.batch_limit = max(1, min(self.batch_limit, clips // 2))
        self._reason = explain(error)

    def step_down(self, model: str, configured: str, smaller: str, error: Exception) -> None:
        """A model ran out of memory: use a smaller compute type than the settings say."""
        self._compute_types[model] = (configured, smaller)
        self._reason = explain(error)

    def explain(self) -> str | None:
        """What differs from the settings, and why; None if nothing does."""
        changes = []
        if self.batch_limit < self._batch_size:
            changes.append(f"batches of {self.batch_limit} instead of {self._batch_size}")
        for model, (configured, used) in self._compute_types.items():
            changes.append(f"{model} in {used} instead of {configured}")
        return f"Memory was short, so {', '.join(changes)}: {self._reason}" if changes else None
