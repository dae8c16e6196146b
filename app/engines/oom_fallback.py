"""What a slot asks of its device's memory: less, each time that there was not enough of it. Pure.

Nothing is ever asked for again that has failed once, for as long as the service runs.
"""

from app.known_errors import explain


class OomFallback:
    """How large a slot's batches may be, and with which compute type it loads each model."""

    def __init__(self, batch_size: int) -> None:
        self.batch_limit = batch_size
        self._batch_size = batch_size
        self._compute_types: dict[str, tuple[str, str]] = {}  # by model: as it was asked for, and as it is
        self._reason = ""

    def compute_type(self, model: str, asked: str) -> str:
        """The compute type for a model for which the settings ask `asked`."""
        return self._compute_types.get(model, ("", asked))[1]

    def halve(self, clips: int, error: Exception) -> None:
        """A batch of so many clips was too large."""
        self.batch_limit = max(1, min(self.batch_limit, clips // 2))
        self._reason = explain(error)

    def step_down(self, model: str, asked: str, smaller: str, error: Exception) -> None:
        """A model is to make do with a smaller compute type than the settings ask for."""
        self._compute_types[model] = (asked, smaller)
        self._reason = explain(error)

    def explain(self) -> str | None:
        """What is not as the settings ask, and why; None where all is."""
        said = []
        if self.batch_limit < self._batch_size:
            said.append(f"batches of {self.batch_limit} instead of {self._batch_size}")
        for model, (asked, now) in self._compute_types.items():
            said.append(f"{model} in {now} instead of {asked}")
        return f"Memory was short, so {', '.join(said)}: {self._reason}" if said else None
