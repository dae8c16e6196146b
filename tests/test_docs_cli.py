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
    assert "| `--output STR`, `-o STR` | transcribe, subtitles | Output file" in text
    assert "Also as `WHISPER_API_KEY`." in text
