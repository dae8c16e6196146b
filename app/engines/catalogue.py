"""The models of the service: which there are, where their files are, and which are loaded."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.common.concurrency import spawn_shared
from app.common.errors import InvalidInput, InvalidSetting, UnknownModel
from app.common.languages import LANGUAGES, language_name
from app.engines.model_files import DEMO, Abilities, ModelFiles, abilities_of, find, local_folder
from workers.messages import LoadOptions

_ENGLISH = ("en",)
DEFAULT_MODEL_ALIAS = "whisper-1"  # OpenAI's name for its model: many clients send it unasked


def parse_aliases(entries: Sequence[str]) -> dict[str, str]:
    """The aliases that WHISPER_MODEL_ALIASES lists as `alias` or `alias=model`, and what each means.

    An empty string stands for the default model. Raises InvalidSetting for a malformed or repeated alias.
    """
    aliases: dict[str, str] = {}
    for entry in entries:
        alias, equals, model = (part.strip() for part in entry.partition("="))
        if not alias or (equals and not model):
            raise _invalid_alias(entry, "an alias is written `alias` or `alias=model`; write it so")
        if alias == DEFAULT_MODEL_ALIAS:
            raise _invalid_alias(entry, f"{alias} always means the default model; leave it out")
        if alias in aliases:
            raise _invalid_alias(entry, f"the alias {alias!r} is listed twice; list it once")
        aliases[alias] = "" if model == DEFAULT_MODEL_ALIAS else model
    return aliases


def check_aliases(aliases: Mapping[str, str], models: Sequence[str]) -> None:
    """Raise InvalidSetting for an alias that is the name of a model, or that means none of `models`."""
    for alias, model in aliases.items():
        entry = f"{alias}={model}" if model else alias
        if alias in models:
            raise _invalid_alias(entry, f"{alias!r} is the name of a model; choose another alias")
        if model and model not in models:
            raise _invalid_alias(
                entry,
                f"the model {model!r} is not offered; add it to WHISPER_MODELS, or let the alias mean one of "
                f"{', '.join(models)}",
            )


def _invalid_alias(entry: str, fault: str) -> InvalidSetting:
    return InvalidSetting(f"WHISPER_MODEL_ALIASES={entry}: {fault}")


@dataclass(slots=True)
class ModelCatalogue:
    """The models that requests may name, by the names that requests use."""

    default: str  # loaded when a worker starts, and unloaded only when it ends
    idle_s: float  # any other model is unloaded after this time without use
    options: dict[str, LoadOptions] = field(default_factory=dict)  # of the models that `add` has got
    others: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)  # what each means; "": the default model
    is_loaded: Callable[[str], bool] = lambda model: False  # by a worker, now
    languages: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of models that were loaded
    notes: dict[str, str] = field(default_factory=dict)  # what a model's results lack, and why
    _abilities: dict[str, Abilities] = field(default_factory=dict)  # as of its files, or its name
    _locating: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    @property
    def is_demo(self) -> bool:
        """Whether the bundled demo model answers, which understands synthetic speech only."""
        return self.default == DEMO

    def states(self) -> dict[str, str]:
        """Each model, the default one first: "loaded" by a worker, or "unloaded"."""
        names = (self.default, *self.others)
        return {name: "loaded" if self.is_loaded(name) else "unloaded" for name in names}

    def listed(self) -> dict[str, str]:
        """Each name that requests may use, models first, with the state of the model that it means."""
        states = self.states()
        aliases = {DEFAULT_MODEL_ALIAS: "", **self.aliases}
        meant = {alias: model or self.default for alias, model in aliases.items()}
        return states | {alias: states[model] for alias, model in meant.items() if model in states}

    def resolve(self, name: str, task: str = "transcribe", language: str | None = None) -> str:
        """The model that a request means by `name`, a model's or an alias; the default one if that is empty.

        Raises UnknownModel, and InvalidInput if the model cannot do the task, or does not know the language
        (ISO 639-1).
        """
        name = self.aliases.get(name, name)
        if name in ("", DEFAULT_MODEL_ALIAS):
            name = self.default
        elif name != self.default and name not in self.others:
            raise UnknownModel(
                f"The model {name!r} is not offered here; GET /v1/models lists those that are, and "
                f"{DEFAULT_MODEL_ALIAS!r} is the default one. WHISPER_MODELS offers more.",
                param="model",
                code="model_not_found",
            )
        self.check(name, task, language)
        return name

    def check(self, model: str, task: str, language: str | None) -> None:
        """Raise InvalidInput if the model cannot do the task, or does not know the language (ISO 639-1).

        Of a model that was not loaded, only its files or its name tell: it knows all languages, or English.
        """
        abilities = self.abilities(model)
        known = abilities.languages
        reason = ": it knows English alone" if known == _ENGLISH else ""
        if task == "translate" and (reason or not abilities.translates):
            raise InvalidInput(
                f"The model {model!r} cannot translate{reason}. Name one that can, such as large-v3: the "
                "service offers it when it is started with WHISPER_MODELS=large-v3.",
                param="model",
            )
        if known and language and language not in known:
            raise InvalidInput(
                f"The model {model!r} does not know {language_name(language)}{reason}. Name another model, "
                "or leave the language out to have it detected.",
                param="language",
            )

    def known_languages(self, model: str) -> tuple[str, ...]:
        """The languages that a model knows, ISO 639-1, as `check` does."""
        return self.abilities(model).languages or tuple(LANGUAGES)

    def abilities(self, model: str) -> Abilities:
        """What a model can do: the languages are those that a worker found, once one has loaded it."""
        if model not in self._abilities:
            self._abilities[model] = abilities_of(model, local_folder(model))
        abilities = self._abilities[model]
        return replace(abilities, languages=self.languages.get(model) or abilities.languages)

    async def locate(self, model: str, load_options: Callable[[ModelFiles], LoadOptions]) -> None:
        """Make sure that a model's files are on this machine; downloads them if necessary.

        A download goes on if the caller is cancelled. `load_options` says how workers load the model. Raises
        ModelUnavailable.
        """
        if model in self.options:
            return
        if model not in self._locating:
            locating = self._locating[model] = spawn_shared(self._locate(model, load_options))
            locating.add_done_callback(lambda _: self._locating.pop(model))
        await asyncio.shield(self._locating[model])

    async def _locate(self, model: str, load_options: Callable[[ModelFiles], LoadOptions]) -> None:
        self.add(model, load_options(await find(model)))

    def add(self, model: str, options: LoadOptions) -> None:
        """A model's files are on this machine, and workers load it with `options`."""
        self.options[model] = options
        # Its files tell more than its name. They are read now, and not while a request is checked.
        self._abilities[model] = abilities_of(model, local_folder(model))
