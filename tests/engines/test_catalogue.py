"""The models that requests may name."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app.engines.catalogue import ModelCatalogue, ModelHolder
from app.engines.model_files import ModelFiles
from app.errors import InvalidInput, UnknownModel
from workers.messages import LoadOptions

TURBO = "large-v3-turbo"


@dataclass
class FakeHolder:
    """A `ModelHolder` with these models in memory, and the languages of those that it ever loaded."""

    models: tuple[str, ...] = ()
    known: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def holds(self, model: str) -> bool:
        return model in self.models

    def languages(self, model: str) -> tuple[str, ...] | None:
        return self.known.get(model)


def new_catalogue(*holders: ModelHolder) -> ModelCatalogue:
    return ModelCatalogue("demo", idle_s=600, others=(TURBO,), holders=holders)


def test_models_are_known_by_name() -> None:
    catalogue = new_catalogue()
    assert [catalogue.resolve(name) for name in ("", "whisper-1", "demo")] == ["demo"] * 3
    assert catalogue.resolve(TURBO) == TURBO
    with pytest.raises(UnknownModel, match="GET /v1/models"):
        catalogue.resolve("gpt-4")


def test_a_model_that_cannot_translate_is_refused_and_the_error_names_one_that_can() -> None:
    catalogue = new_catalogue()
    assert catalogue.resolve("demo", "translate") == "demo"
    assert catalogue.resolve(TURBO, "transcribe") == TURBO
    with pytest.raises(InvalidInput, match="WHISPER_MODELS=large-v3"):
        catalogue.resolve(TURBO, "translate")


def test_only_the_demo_model_is_a_demo() -> None:
    assert new_catalogue().is_demo
    assert not ModelCatalogue(TURBO, idle_s=600, others=("demo",)).is_demo


def test_a_model_is_loaded_if_any_worker_holds_it() -> None:
    assert new_catalogue().states() == {"demo": "unloaded", TURBO: "unloaded"}
    catalogue = new_catalogue(FakeHolder(), FakeHolder(models=(TURBO,)))
    assert catalogue.states() == {"demo": "unloaded", TURBO: "loaded"}
    assert list(catalogue.states()) == ["demo", TURBO]  # the default one first


def test_a_language_that_the_model_does_not_know_is_refused() -> None:
    catalogue = new_catalogue(FakeHolder(), FakeHolder(known={"demo": ("en", "de")}))
    catalogue.check_language("demo", "de")
    catalogue.check_language("demo", None)
    with pytest.raises(InvalidInput, match="does not know french") as raised:
        catalogue.check_language("demo", "fr")
    assert raised.value.param == "language"


def test_any_language_passes_before_the_model_was_loaded() -> None:
    new_catalogue().check_language("demo", "fr")
    new_catalogue(FakeHolder(known={"demo": ("en",)})).check_language(TURBO, "fr")


@pytest.mark.anyio
async def test_a_model_is_located_once(monkeypatch: pytest.MonkeyPatch) -> None:
    located: list[str] = []

    async def find(model: str) -> ModelFiles:
        located.append(model)
        await asyncio.sleep(0)
        return ModelFiles(model, Path("/models") / model)

    def load_options(files: ModelFiles) -> LoadOptions:
        return LoadOptions(files.name, str(files.path), "cpu", "int8", 1)

    monkeypatch.setattr("app.engines.catalogue.find", find)
    catalogue = new_catalogue()
    await asyncio.gather(*(catalogue.locate(TURBO, load_options) for _ in range(2)))
    await catalogue.locate(TURBO, load_options)
    assert located == [TURBO]
    assert catalogue.options == {TURBO: LoadOptions(TURBO, f"/models/{TURBO}", "cpu", "int8", 1)}
