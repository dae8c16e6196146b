"""A catalogue for tests of slots."""

from app.engines.catalogue import ModelCatalogue
from workers.messages import LoadOptions


def new_catalogue(idle_s: float = 99, compute_type: str = "int8") -> ModelCatalogue:
    """A catalogue of three models: "main", the default one, "a" and "b"."""
    options = {name: LoadOptions(name, f"/{name}", "cpu", compute_type, 1) for name in ("main", "a", "b")}
    return ModelCatalogue("main", idle_s, options)
