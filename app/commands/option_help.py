"""The options of a transcription in `--help`, by group, with their defaults."""

from typing import Any

from typer.core import TyperCommand

_SPEECH = ("vad_threshold", "min_speech_ms", "min_silence_ms", "speech_pad_ms")


class WithOptions(TyperCommand):
    """A command whose help lists what `--option NAME=VALUE` can be."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        super().format_help(ctx, formatter)
        for title, rows in _groups().items():
            with formatter.section(f"--option NAME=VALUE: {title}"):
                formatter.write_dl(rows, col_max=28)


def _groups() -> dict[str, list[tuple[str, str]]]:
    """The options of each group: `NAME=DEFAULT`, and what it is."""
    from app.common.options import FILE_OPTIONS, SPEAKER_OPTIONS, Options

    groups: dict[str, list[tuple[str, str]]] = {
        name: [] for name in ("transcription", "who speaks", "what counts as speech", "files and subtitles")
    }
    for name, field in Options.model_fields.items():
        if name in FILE_OPTIONS:
            group = "files and subtitles"
        elif name in _SPEECH:
            group = "what counts as speech"
        else:
            group = "who speaks" if name in (*SPEAKER_OPTIONS, "channels") else "transcription"
        default = field.default
        shown = str(default).lower() if isinstance(default, bool) else "" if default is None else f"{default}"
        groups[group].append((f"{name}={shown}", (field.description or "").replace("`", "")))
    return groups
