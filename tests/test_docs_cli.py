"""docs/cli.md lists the commands and options that there are."""

from pathlib import Path

from tests.cli_table import BEGIN, END, cli_table

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"


def test_the_table_is_that_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.partition(f"{BEGIN}\n")[2].partition(f"\n{END}")[0] == "\n".join(cli_table())


def test_every_command_has_its_options() -> None:
    text = "\n".join(cli_table())
    for usage in ("serve", "transcribe FILES...", "subtitles FILES...", "models list", "models pull NAME..."):
        assert f"### `whisperfleet {usage}" in text
    assert "| `--output STR`, `-o STR` | Output file" in text
    assert "Also as `WHISPER_API_KEY`." in text
