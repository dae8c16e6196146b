"""The tables of docs/cli.md: every command with its arguments and options, from the code."""

from collections.abc import Iterator
from typing import Any

import typer.main

from app.cli import cli


def cli_table() -> Iterator[str]:
    """The lines: a row for each command, then one for each option, with the commands that have it."""
    commands = list(_commands(typer.main.get_command(cli), "whisperfleet"))
    yield "| command | |"
    yield "| --- | --- |"
    for name, command in commands:
        arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
        usage = " ".join([name, *map(_metavar, arguments)])
        described = [command.help, *(f"`{_metavar(argument)}`: {argument.help}" for argument in arguments)]
        yield f"| `{usage}` | {_cell(' '.join(described))} |"
    yield ""
    options: dict[tuple[str, str], list[str]] = {}
    for name, command in commands:
        for option in command.params:
            if option.param_type_name == "option":
                row = (_names(option), f"{_cell(option.help)}{_default(option)}")
                options.setdefault(row, []).append(name.removeprefix("whisperfleet "))
    yield "| option | of | |"
    yield "| --- | --- | --- |"
    for (names, text), having in sorted(options.items(), key=lambda row: row[0][0]):
        yield f"| {names} | {', '.join(having)} | {text} |"


def _commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    """All commands, those of groups too, with their whole names."""
    for part, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{name} {part}")
        else:
            yield f"{name} {part}", command


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
