"""The models that requests may name."""

import asyncio
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from app.common.errors import InvalidInput, InvalidSetting, ModelUnavailable, UnknownModel
from app.engines.catalogue import ModelCatalogue, check_aliases, parse_aliases
from app.engines.model_files import ModelFiles
from workers.messages import LoadOptions

TURBO = "large-v3-turbo"


def new_catalogue(**others: Any) -> ModelCatalogue:
    return ModelCatalogue("demo", idle_s=600, others=(TURBO,), **others)


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


ALIASES = {"gpt-4o-transcribe": "", "gpt-4o-mini-transcribe": TURBO, "lost": "large-v2"}


def test_an_alias_means_its_model_and_does_as_much() -> None:
    catalogue = new_catalogue(aliases=ALIASES)
    assert catalogue.resolve("gpt-4o-transcribe") == "demo"
    assert catalogue.resolve("gpt-4o-mini-transcribe") == TURBO
    assert catalogue.resolve("gpt-4o-transcribe", "translate") == "demo"
    with pytest.raises(InvalidInput, match=f"{TURBO!r} cannot translate"):
        catalogue.resolve("gpt-4o-mini-transcribe", "translate")
    catalogue.default = "base"  # another default model has taken the place of the first
    assert catalogue.resolve("gpt-4o-transcribe") == "base"


def test_names_are_listed_with_the_states_of_their_models() -> None:
    catalogue = new_catalogue(aliases=ALIASES, is_loaded=TURBO.__eq__)
    assert list(catalogue.listed().items()) == [
        ("demo", "unloaded"),
        (TURBO, "loaded"),
        ("whisper-1", "unloaded"),
        ("gpt-4o-transcribe", "unloaded"),
        ("gpt-4o-mini-transcribe", "loaded"),
    ]
    assert catalogue.states().keys() == {"demo", TURBO}
    with pytest.raises(UnknownModel, match="large-v2"):
        catalogue.resolve("lost")


def test_aliases_are_written_alone_or_with_their_model() -> None:
    assert parse_aliases(()) == {}
    assert parse_aliases(("a", "b = large-v3", "c=/models/x=y", "d=whisper-1")) == {
        "a": "",
        "b": "large-v3",
        "c": "/models/x=y",
        "d": "",
    }


@pytest.mark.parametrize(
    ("entries", "hint"),
    [
        (("=large-v3",), "WHISPER_MODEL_ALIASES==large-v3: an alias is written"),
        (("a=",), "write it so"),
        (("a", "a"), "'a' is listed twice; list it once"),
        (("a", "a=large-v3"), "WHISPER_MODEL_ALIASES=a=large-v3: the alias 'a' is listed twice"),
        (("whisper-1=large-v3",), "whisper-1 always means the default model; leave it out"),
    ],
)
def test_a_malformed_or_repeated_alias_is_refused(entries: tuple[str, ...], hint: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        parse_aliases(entries)
    assert hint in raised.value.message


def test_an_alias_of_a_model_that_is_not_offered_is_refused() -> None:
    check_aliases({"a": "", "b": TURBO, "c": "demo"}, ("demo", TURBO))
    with pytest.raises(
        InvalidSetting, match=rf"'large-v3' is not offered; add it to WHISPER_MODELS.*{TURBO}"
    ):
        check_aliases({"b": "large-v3"}, ("demo", TURBO))
    with pytest.raises(InvalidSetting, match="'a' is not offered"):
        check_aliases({"a": "", "b": "a"}, ("demo", TURBO))
    with pytest.raises(InvalidSetting, match=f"{TURBO!r} is the name of a model; choose another alias"):
        check_aliases({TURBO: "demo"}, ("demo", TURBO))


def test_only_the_demo_model_is_a_demo() -> None:
    assert new_catalogue().is_demo
    assert not ModelCatalogue(TURBO, idle_s=600, others=("demo",)).is_demo


def test_a_model_is_loaded_if_a_worker_holds_it() -> None:
    assert new_catalogue().states() == {"demo": "unloaded", TURBO: "unloaded"}
    catalogue = new_catalogue(is_loaded=TURBO.__eq__)
    assert catalogue.states() == {"demo": "unloaded", TURBO: "loaded"}
    assert list(catalogue.states()) == ["demo", TURBO]  # the default one first


def test_a_language_that_the_model_does_not_know_is_refused() -> None:
    catalogue = new_catalogue(languages={"demo": ("en", "de")})
    assert catalogue.resolve("demo", language="de") == "demo"
    assert catalogue.resolve("demo") == "demo"
    with pytest.raises(InvalidInput, match="does not know french") as raised:
        catalogue.resolve("demo", language="fr")
    assert raised.value.param == "language"


def test_any_language_passes_before_the_model_was_loaded() -> None:
    assert new_catalogue().resolve("demo", language="fr") == "demo"
    assert new_catalogue(languages={"demo": ("en",)}).resolve(TURBO, language="fr") == TURBO


def test_an_english_only_model_is_refused_what_it_cannot_do_before_it_is_loaded() -> None:
    catalogue = ModelCatalogue("demo", idle_s=600, others=("tiny.en",))
    assert catalogue.resolve("tiny.en", language="en") == "tiny.en"
    with pytest.raises(InvalidInput, match=r"'tiny.en' cannot translate: it knows English alone"):
        catalogue.resolve("tiny.en", "translate")
    with pytest.raises(InvalidInput, match=r"'tiny.en' does not know german: it knows English alone"):
        catalogue.resolve("tiny.en", language="de")


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


@pytest.mark.anyio
async def test_a_download_goes_on_without_those_who_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    located: list[str] = []
    arrived = asyncio.Event()

    async def find(model: str) -> ModelFiles:
        located.append(model)
        await arrived.wait()
        return ModelFiles(model, Path("/models") / model)

    def load_options(files: ModelFiles) -> LoadOptions:
        return LoadOptions(files.name, str(files.path), "cpu", "int8", 1)

    monkeypatch.setattr("app.engines.catalogue.find", find)
    catalogue = new_catalogue()
    for _ in range(2):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await catalogue.locate(TURBO, load_options)
    arrived.set()
    await catalogue.locate(TURBO, load_options)
    assert located == [TURBO]


@pytest.mark.anyio
async def test_a_model_that_was_unavailable_is_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def find(model: str) -> ModelFiles:
        raise ModelUnavailable(f"attempt {next(attempts)}")

    attempts = count(1)
    monkeypatch.setattr("app.engines.catalogue.find", find)
    catalogue = new_catalogue()
    for attempt in (1, 2):
        with pytest.raises(ModelUnavailable, match=f"attempt {attempt}"):
            await catalogue.locate(TURBO, lambda files: LoadOptions(TURBO, "", "cpu", "int8", 1))
