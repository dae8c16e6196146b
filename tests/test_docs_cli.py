"""docs/cli.md lists the commands and options that there are."""

from tests.cli_table import cli_table


def test_every_command_has_its_options() -> None:
    text = "\n".join(cli_table())
    usages = (
        "serve",
        "transcribe FILES...",
        "subtitles FILES...",
        "drain NODE",
        "models list",
        "models pull NAME...",
    )
    for usage in usages:
        assert f"| `whisperfleet {usage}` | " in text
    [drain] = [line for line in cli_table() if line.startswith("| `whisperfleet drain NODE`")]
    assert drain.endswith(" | `--server`, `--api-key`, `--timeout`, `--undo` |")
