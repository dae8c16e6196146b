"""The table of docs/cli.md: every command with its arguments and options, from the code."""

from collections.abc import Iterator
from typing import Any

import typer.main

from app.cli import cli


def cli_table() -> Iterator[str]:
    """The lines: a row for each command, with the names of its options."""
    yield "| command | | options |"
    yield "| --- | --- | --- |"
    for name, command in _commands(typer.main.get_command(cli), "whisperfleet"):
        arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
        usage = " ".join([name, *map(_metavar, arguments)])
        described = [command.help, *(f"`{_metavar(argument)}`: {argument.help}" for argument in arguments)]
        options = [option for option in command.params if option.param_type_name == "option"]
        names = ", ".join(f"`{name}`" for option in options for name in option.opts if name.startswith("--"))
        yield f"| `{usage}` | {_cell(' '.join(described))} | {names} |"


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


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")
