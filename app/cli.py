"""The commands and their arguments. Imports lazily: a shell waits for the completion of a value."""

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from app.commands.option_help import WithOptions
from app.transcript.formats import FORMATS

_LAST_WAIT_S = 2.0

_TASKS = ("transcribe", "translate")


def _complete(*values: str) -> Callable[[str], list[str]]:
    """Completes the beginning of one of the values."""
    return lambda incomplete: [value for value in values if value.startswith(incomplete)]


def _complete_model(incomplete: str) -> list[str]:
    from app.engines.model_files import DEMO, REPOSITORIES

    return _complete(DEMO, *REPOSITORIES)(incomplete)


def _complete_option(incomplete: str) -> list[str]:
    from app.common.options import Options

    return _complete(*(f"{name}=" for name in Options.model_fields))(incomplete)


def _format_option(default: str = "") -> Any:
    return typer.Option(
        "--format", "-f", help=f"{', '.join(FORMATS)}.{default}", autocompletion=_complete(*FORMATS)
    )


_Output = Annotated[
    str | None, typer.Option("--output", "-o", help="Output file, or output folder (exists, or ends with /).")
]
_Format = Annotated[str | None, _format_option(" Default: the output's suffix, or srt.")]
_Task = Annotated[
    str, typer.Option(help="transcribe, or translate into English.", autocompletion=_complete(*_TASKS))
]
_Prompt = Annotated[str | None, typer.Option(help="Text that sets style and spelling.")]
_Hotwords = Annotated[str | None, typer.Option(help="Words to expect.")]
_Terms = Annotated[
    Path | None,
    typer.Option(
        help="JSON file with names and terms: how they should be written, and what is written today.",
        show_default=False,
    ),
]
_Model = Annotated[
    str | None, typer.Option("--model", "-m", help="Model [WHISPER_MODEL].", autocompletion=_complete_model)
]
_NamedOptions = Annotated[
    list[str] | None,
    typer.Option(help="Any other option as NAME=VALUE; can be repeated.", autocompletion=_complete_option),
]
_Server = Annotated[str | None, typer.Option(help="Address of a running service. Default: start one here.")]
_ApiKey = Annotated[
    str | None, typer.Option(help="Key for the server.", envvar="WHISPER_API_KEY", show_default=False)
]
_ServerAddress = Annotated[str, typer.Option(help="Address of the running service.")]
_LOCALHOST = "http://localhost:8000"

cli = typer.Typer(
    name="whisperfleet",
    help="Audio in, subtitles out, on every GPU.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"whisperfleet {version('whisperfleet')}")
        raise typer.Exit


@cli.callback()
def _options_of_all_commands(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Audio in, subtitles out, on every GPU."""


@cli.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on [WHISPER_HOST].")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on [WHISPER_PORT].")] = None,
    processes: Annotated[
        int | None, typer.Option(help="Number of server processes [WHISPER_PROCESSES].")
    ] = None,
) -> None:
    """Start the service."""
    gc.disable()  # `run_server` enables it: libraries that load make many objects, of which few are garbage
    from app.commands.serve import run_server

    _exit(run_server(_given(host=host, port=port, processes=processes)))


@cli.command(cls=WithOptions)
def transcribe(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Recordings, folders with recordings, or patterns. With --server, also URLs.",
            show_default=False,
        ),
    ],
    output: _Output = None,
    file_format: _Format = None,
    language: Annotated[str | None, typer.Option("--language", "-l", help="Spoken language.")] = None,
    task: _Task = "transcribe",
    prompt: _Prompt = None,
    hotwords: _Hotwords = None,
    terms: _Terms = None,
    model: _Model = None,
    diarize: Annotated[bool, typer.Option("--diarize", help="Say who speaks.")] = False,
    speakers: Annotated[
        int | None,
        typer.Option(
            help="How many people speak; with --diarize, which it implies. Default: the voices decide."
        ),
    ] = None,
    words: Annotated[bool, typer.Option("--words", help="Times for each word, in JSON.")] = False,
    option: _NamedOptions = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="In folders, replace outputs that exist.")
    ] = False,
    server: _Server = None,
    api_key: _ApiKey = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the jobs on the server, to be corrected on its page.")
    ] = False,
    tag: Annotated[list[str] | None, typer.Option(help="Tag of jobs that stay; can be repeated.")] = None,
    title: Annotated[str | None, typer.Option(help="Title of the job that stays: of one recording.")] = None,
) -> None:
    """Transcribe recordings into subtitles."""
    from app.commands.transcribe import run_transcribe

    flags = {
        "diarize": diarize or speakers is not None or None,
        "num_speakers": speakers,
        "word_timestamps": words or None,
    }
    given = _given(language=language, task=task, prompt=prompt, hotwords=hotwords, **flags)
    kept = _given(tags=",".join(tag or []) or None, title=title)
    if kept and not keep:
        raise typer.BadParameter("--tag and --title are for jobs that stay: add --keep")
    code = run_transcribe(
        files,
        output,
        file_format,
        _named(option) | given,
        model,
        server,
        api_key,
        terms=terms,
        overwrite=overwrite,
        kept={name: str(value) for name, value in kept.items()} if keep else None,
    )
    _exit(code)


@cli.command()
def watch(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders with recordings, searched with all below.", show_default=False),
    ],
    file_format: Annotated[str, _format_option()] = "srt",
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
    task: _Task = "transcribe",
    prompt: _Prompt = None,
    hotwords: _Hotwords = None,
    model: _Model = None,
    option: _NamedOptions = None,
    server: _Server = None,
    api_key: _ApiKey = None,
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
def fetch(
    output: Annotated[
        str, typer.Option("--output", "-o", help="The folder, which is created.", show_default=False)
    ],
    file_format: Annotated[str, _format_option()] = "srt",
    tag: Annotated[
        list[str] | None, typer.Option(help="Only jobs with this tag; can be repeated: with all of them.")
    ] = None,
    text: Annotated[
        str, typer.Option("--query", "-q", help="Only jobs that these words find.", show_default=False)
    ] = "",
    option: Annotated[
        list[str] | None,
        typer.Option(
            help="An option of files as NAME=VALUE; can be repeated. Default: those of the job.",
            autocompletion=_complete_option,
        ),
    ] = None,
    server: _ServerAddress = _LOCALHOST,
    api_key: _ApiKey = None,
) -> None:
    """Bring the transcripts of a service into a folder, with all corrections: what has changed since."""
    from app.commands.fetch import run_fetch

    _exit(run_fetch(server, api_key, text, tag or [], file_format, _named(option), output))


@cli.command()
def usage(
    first: Annotated[str, typer.Option("--from", help="First day. Default: of this month.")] = "",
    last: Annotated[str, typer.Option("--to", help="Last day. Default: today.")] = "",
    by: Annotated[str, typer.Option(help="Some of owner, model, day, with commas.")] = "owner,model",
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, for programs.")] = False,
    server: _ServerAddress = _LOCALHOST,
    api_key: _ApiKey = None,
) -> None:
    """Print how much was transcribed on a service: with an operator's key, by all owners."""
    from app.commands.usage import run_usage

    _exit(run_usage(server, api_key, {"from": first, "to": last, "by": by}, as_csv=as_csv))


@cli.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")] = False,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Check every node of the Ray cluster instead of this machine.")
    ] = False,
) -> None:
    """Check this machine, its GPUs, the model and every worker, and print a remedy for each failure."""
    from app.commands.doctor.command import run_doctor

    _exit(run_doctor(as_json=as_json, cluster=cluster))


@cli.command()
def drain(
    node: Annotated[
        str,
        typer.Argument(
            metavar="NODE", help="A node's id or name, as `GET /v1/nodes` lists it.", show_default=False
        ),
    ],
    server: _ServerAddress = _LOCALHOST,
    api_key: _ApiKey = None,
    timeout: Annotated[
        float | None, typer.Option(help="Wait at most so long (s). Default: until the workers have ended.")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Use a drained node again.")] = False,
) -> None:
    """Let the workers of a Ray node finish their batches and end, and wait until they have."""
    from app.commands.drain import run_drain

    _exit(run_drain(node, server, api_key, timeout_s=timeout, undo=undo))


models = typer.Typer(help="List models, and download them before they are needed.", no_args_is_help=True)
cli.add_typer(models, name="models")


@models.command("list")
def list_models() -> None:
    """List the models on this machine, and those that have a short name."""
    from app.commands.models import run_list

    _exit(run_list())


@models.command("pull")
def pull_models(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Sizes, Hugging Face ids, or auto for this machine's default.",
            show_default=False,
            autocompletion=_complete_model,
        ),
    ],
) -> None:
    """Download models into Hugging Face's cache. A download that was cut goes on where it stopped."""
    from app.commands.models import run_pull

    _exit(run_pull(names))


@cli.command()
def backup(
    file: Annotated[Path, typer.Argument(help="The file to write. It must not exist.", show_default=False)],
) -> None:
    """Copy the database of jobs and transcripts into a file, also while the service runs."""
    from app.commands.backup import run_backup

    _exit(run_backup(file))


@cli.command()
def restore(
    file: Annotated[Path, typer.Argument(help="A file that `backup` has written.", show_default=False)],
) -> None:
    """Replace the database by a backup. The service must not run; the database before is kept."""
    from app.commands.backup import run_restore

    _exit(run_restore(file))


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
    # Spawned children would run it again, with all its imports.
    vars(sys.modules["__main__"]).pop("__file__", None)
    try:
        cli()
    except SystemExit as leaving:
        # Only commands that start processes have imported it, and importing it takes a while.
        processes = sys.modules.get("app.pool.process")
        if processes and not processes.have_all_ended(_LAST_WAIT_S):
            # The interpreter would wait for a process that cannot be killed.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(leaving.code if isinstance(leaving.code, int) else int(bool(leaving.code)))
        raise


if __name__ == "__main__":
    main()
