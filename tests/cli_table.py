"""The tables of docs/cli.md: every command with its arguments and options, from the code."""

from collections.abc import Iterator
from typing import Any

import typer.main

from app.cli import cli


def cli_table() -> Iterator[str]:
    """The lines: a section for each command."""
    return _group(typer.main.get_command(cli), "whisperfleet")


def _group(group: Any, name: str) -> Iterator[str]:
    for part, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _group(command, f"{name} {part}")
        else:
            yield from _command(command, f"{name} {part}")


def _command(command: Any, name: str) -> Iterator[str]:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    usage = " ".join([name, *map(_metavar, arguments), *(["[OPTIONS]"] if options else [])])
    yield f"### `{usage}`"
    yield f"{command.help}"
    yield ""
    if command.params:
        yield "| argument or option | |"
        yield "| --- | --- |"
        for argument in arguments:
            yield f"| `{_metavar(argument)}` | {_cell(argument.help)} |"
        for option in options:
            yield f"| {_names(option)} | {_cell(option.help)}{_default(option)} |"
        yield ""


def _metavar(argument: Any) -> str:
    name: str = argument.metavar or argument.name.upper()
    return name if argument.nargs == 1 or name.endswith("...") else f"{name}..."


def _names(option: Any) -> str:
    names = [*(name for name in option.opts if name.startswith("--")), *option.opts]
    value = "" if option.is_flag else f" {option.type.name.upper()}"
    return ", ".join(f"`{name}{value}`" for name in dict.fromkeys(names))


def _default(option: Any) -> str:
    shown = f" Default: `{option.default}`." if option.default not in (None, False) else ""
    return shown + (f" Also as `{option.envvar}`." if option.envvar else "")


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")
