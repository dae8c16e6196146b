"""The commands and their arguments. Imports lazily: each spawned child imports this module again."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

_LAST_WAIT_S = 2.0

_Output = Annotated[
    str | None,
    typer.Option("--output", "-o", help="Output file, or output folder (exists, or ends with /)."),
]
_Format = Annotated[
    str | None,
    typer.Option("--format", "-f", help="srt, vtt, ass, ttml, scc, stl, lrc, tsv, txt, json."),
]
_NamedOptions = Annotated[
    list[str] | None, typer.Option(help="Any other option as NAME=VALUE; can be repeated.")
]

cli = typer.Typer(
    name="whisperfleet",
    help="Audio in, subtitles out, on every GPU.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@cli.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on [WHISPER_HOST].")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on [WHISPER_PORT].")] = None,
) -> None:
    """Start the service."""
    from app.commands.serve import run_server

    _exit(run_server(_given(host=host, port=port)))


@cli.command()
def transcribe(
    files: Annotated[list[Path], typer.Argument(help="Recordings, audio or video.", show_default=False)],
    output: _Output = None,
    file_format: _Format = None,
    language: Annotated[str | None, typer.Option("--language", "-l", help="Spoken language.")] = None,
    task: Annotated[str, typer.Option(help="transcribe, or translate into English.")] = "transcribe",
    prompt: Annotated[str | None, typer.Option(help="Text that sets style and spelling.")] = None,
    hotwords: Annotated[str | None, typer.Option(help="Words to expect.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Model [WHISPER_MODEL].")] = None,
    option: _NamedOptions = None,
    server: Annotated[
        str | None, typer.Option(help="Address of a running service. Default: start one here.")
    ] = None,
    api_key: Annotated[
        str | None, typer.Option(help="Key for the server.", envvar="WHISPER_API_KEY", show_default=False)
    ] = None,
) -> None:
    """Transcribe recordings into subtitles."""
    from app.commands.transcribe import run_transcribe

    options = _named(option) | _given(language=language, task=task, prompt=prompt, hotwords=hotwords)
    _exit(run_transcribe(files, output, file_format, options, model, server, api_key))


@cli.command()
def watch(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders with recordings, searched with all below.", show_default=False),
    ],
    file_format: _Format = None,
    language: Annotated[
        str | None, typer.Option("--language", "-l", help="Spoken language of all recordings.")
    ] = None,
    only_language: Annotated[
        list[str] | None,
        typer.Option(help="Only recordings in this language; can be repeated. Others get no subtitle."),
    ] = None,
    skip_existing: Annotated[
        bool,
        typer.Option(
            "--skip-existing", help="Not if any subtitle of the language is beside or inside the recording."
        ),
    ] = False,
    include: Annotated[
        list[str] | None,
        typer.Option(help="Only files that match this glob; can be repeated. Default: audio and video."),
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Not these files; can be repeated.")] = None,
    min_duration: Annotated[float, typer.Option(help="Not shorter recordings (s).")] = 0.0,
    settle: Annotated[
        float, typer.Option(help="A file that has not changed for so long is complete (s).")
    ] = 10.0,
    poll: Annotated[
        float | None,
        typer.Option(help="Search the folders so often (s), for network mounts. Default: follow events."),
    ] = None,
    task: Annotated[str, typer.Option(help="transcribe, or translate into English.")] = "transcribe",
    prompt: Annotated[str | None, typer.Option(help="Text that sets style and spelling.")] = None,
    hotwords: Annotated[str | None, typer.Option(help="Words to expect.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Model [WHISPER_MODEL].")] = None,
    option: _NamedOptions = None,
    server: Annotated[
        str | None, typer.Option(help="Address of a running service. Default: start one here.")
    ] = None,
    api_key: Annotated[
        str | None, typer.Option(help="Key for the server.", envvar="WHISPER_API_KEY", show_default=False)
    ] = None,
) -> None:
    """Write subtitles beside the recordings in folders, now and as they come."""
    from app.commands.watch import run_watch

    options = _named(option) | _given(language=language, task=task, prompt=prompt, hotwords=hotwords)
    code = run_watch(
        folders,
        file_format,
        options,
        model,
        server,
        api_key,
        skip_existing=skip_existing,
        only_languages=only_language or (),
        include=include or (),
        exclude=exclude or (),
        min_duration_s=min_duration,
        settle_s=settle,
        poll_s=poll,
    )
    _exit(code)


@cli.command()
def subtitles(
    files: Annotated[
        list[Path], typer.Argument(help="Transcripts in JSON; - is standard input.", show_default=False)
    ],
    output: _Output = None,
    file_format: _Format = None,
    language: Annotated[
        str | None, typer.Option("--language", "-l", help="Spoken language. Default: the transcript's.")
    ] = None,
    option: _NamedOptions = None,
) -> None:
    """Turn transcripts in JSON, from whisperfleet and other Whisper tools, into subtitles."""
    from app.commands.subtitles import run_subtitles

    _exit(run_subtitles(files, output, file_format, _named(option) | _given(language=language)))


@cli.command()
def doctor() -> None:
    """Check this machine, its GPUs, the model and every worker, and print a remedy for each failure."""
    from app.commands.doctor import run_doctor

    _exit(run_doctor())


@cli.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
)
def bench(context: typer.Context) -> None:
    """Run benchmarks on this machine; `whisperfleet bench --help` lists them (source tree only)."""
    from app.commands.bench import run_bench

    _exit(run_bench(context.args))


def _given(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def _named(pairs: list[str] | None) -> dict[str, object]:
    """The values of `--option NAME=VALUE`."""
    return dict(pair.partition("=")[::2] for pair in pairs or [])


def _exit(code: int) -> None:
    raise typer.Exit(code)


def main() -> None:
    """The console script."""
    try:
        cli()
    except SystemExit as leaving:
        # Only commands that start processes have imported it, and importing it takes a while.
        processes = sys.modules.get("app.scheduling.process")
        if processes and not processes.have_all_ended(_LAST_WAIT_S):
            # The interpreter would wait for a process that cannot be killed.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(leaving.code if isinstance(leaving.code, int) else int(bool(leaving.code)))
        raise


if __name__ == "__main__":
    main()
