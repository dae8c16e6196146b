"""The tables of the documentation that are made from the code: `python -m tests.tables` writes them anew.

In a page, a table stands between two comments: `<!-- table: NAME -->` and `<!-- end of table -->`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from textwrap import indent
from typing import Any, get_args

from app.api.audio.asr import AsrQuery
from app.api.audio.openai_responses import ResponseFormat
from app.api.jobs.results import ResultFormat
from app.api.operation.metric_list import METRICS, PREFIX
from app.common.options import FILE_OPTIONS, Options
from app.settings import Settings
from app.transcript.formats import FORMATS
from bench.capacity import capacity_table, costs_table, speedups_table
from bench.model_sizes import models_table
from bench.server_tables import hardware_table, load_table, parts_table, server_table
from tests.cli_table import cli_table
from tests.pages import PAGES, ROOT

Rows = Iterable[Iterable[str]]

MARKED = re.compile(
    r"(?P<head><!-- table: (?P<name>[\w-]+) -->\n)(?P<table>.*?)(?P<foot><!-- end of table -->)", re.DOTALL
)


def table(titles: Iterable[str], rows: Rows) -> Iterator[str]:
    """The lines of a table. A `|` in a cell is escaped."""
    titles = list(titles)
    for cells in (titles, ["---"] * len(titles), *rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


# The pages with tables that are made from the code.
TABLE_PAGES = [*PAGES, ROOT / "bench" / "RESULTS.md"]

ALERTS = ROOT / "docker" / "monitoring" / "prometheus" / "alerts.yml"
MANIFEST = ROOT / "deploy" / "kubernetes-monitoring.yaml"

# The settings that README lists.
MAIN_SETTINGS = ("model", "models", "gpus", "host", "port", "api_keys", "data_dir", "result_ttl_s")


# The tasks of settings: each begins with the setting named here, in the order of the class.
TASKS = {
    "model": "Choose the models",
    "device": "Use GPUs and cores",
    "engine": "Use a cluster, or no model",
    "host": "Listen, and stand behind a proxy",
    "api_keys": "Say who may use it",
    "cors_origins": "Let web pages and host names in",
    "max_upload_mb": "Limit what clients take",
    "allow_urls": "Contact other addresses",
    "data_dir": "Store, and delete",
    "log_level": "Log",
}


def settings_table(names: Iterable[str], tasks: Mapping[str, str] = {}) -> Iterator[str]:
    """A row for each of these settings, and one for each task before its first setting."""
    rows = []
    for name in names:
        if name in tasks:
            rows.append([f"**{tasks[name]}**", "", ""])
        field = Settings.model_fields[name]
        extra = field.json_schema_extra
        computed = extra.get("default") if isinstance(extra, dict) else None
        default = str(computed) if computed else _shown(field.default)
        rows.append([f"`WHISPER_{name.upper()}`", default, field.description or ""])
    return table(["variable", "default", ""], rows)


def options_table(names: Iterable[str]) -> Iterator[str]:
    """A row for each of these options of a transcription, with the values that it can have."""
    schema = Options.model_json_schema()["properties"]
    rows = [
        [
            f"`{name}`",
            _shown(Options.model_fields[name].default),
            _values(schema[name]),
            schema[name]["description"],
        ]
        for name in names
    ]
    return table(["option", "default", "values", ""], rows)


def formats_table() -> Iterator[str]:
    """A row for each format of a transcript, and where it can be had."""
    places = {
        "OpenAI's endpoints": get_args(ResponseFormat),
        "`/asr`": get_args(AsrQuery.model_fields["output"].annotation),
        "jobs": get_args(ResultFormat),
        "command line": tuple(FORMATS),
    }
    described = {name: form.description for name, form in FORMATS.items()}
    described |= {
        "verbose_json": "OpenAI's: segments with their scores, and words if asked for.",
        "diarized_json": "OpenAI's: segments with their speakers.",
        "text": "The text alone.",
    }
    assert described.keys() == {name for known in places.values() for name in known}
    rows = []
    for name, description in described.items():
        form = FORMATS.get(name)
        if form is not None and form.max_line_chars is not None:
            description = f"{description} At most {form.max_line_chars} characters a line."
        rows.append(
            [f"`{name}`", description, *("yes" if name in known else "" for known in places.values())]
        )
    return table(["format", "", *places], rows)


def metrics_table() -> Iterator[str]:
    """A row for each metric."""
    rows = []
    for metric in METRICS:
        labels = [
            f"`{name}`" + (f": {', '.join(values)}" if values else "")
            for name, values in metric.labels.items()
        ]
        rows.append([f"`{PREFIX}{metric.name}`", metric.kind, "; ".join(labels), metric.help])
    return table(["metric", "type", "labels", ""], rows)


def _shown(default: object) -> str:
    """A default as users write it."""
    if isinstance(default, bool):
        return str(default).lower()
    if default is None or default in ((), ""):
        return "none"
    if isinstance(default, tuple):
        return ", ".join(f"`{value}`" for value in default)
    return f"`{default}`" if isinstance(default, str) else f"{default:.7g}"


def _values(schema: dict[str, Any]) -> str:
    """The values that a JSON schema allows, in words."""
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind.get("type") != "null"]
    return ", or ".join(filter(None, map(_kind, kinds)))


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "minimum" in schema:
        return f"{schema['minimum']:g} to {schema['maximum']:g}"
    if "maxLength" in schema:
        return f"text, up to {schema['maxLength']} characters"
    return {"boolean": "`true`, `false`", "string": "text"}[schema["type"]]


TABLES: dict[str, Callable[[], Iterable[str]]] = {
    "settings": lambda: settings_table(Settings.model_fields, TASKS),
    "main-settings": lambda: settings_table(MAIN_SETTINGS),
    "options": lambda: options_table(name for name in Options.model_fields if name not in FILE_OPTIONS),
    "file-options": lambda: options_table(name for name in Options.model_fields if name in FILE_OPTIONS),
    "formats": formats_table,
    "metrics": metrics_table,
    "models": models_table,
    "server": server_table,
    "server-parts": parts_table,
    "server-load": load_table,
    "hardware": hardware_table,
    "costs": costs_table,
    "speedups": speedups_table,
    "capacity": capacity_table,
    "cli": cli_table,
}


def rewritten(page: str) -> str:
    """The page with its tables made anew. Raises KeyError for a name that is not in `TABLES`."""

    def fill(match: re.Match[str]) -> str:
        lines = "\n".join(TABLES[match["name"]]())
        return f"{match['head']}{lines}\n{match['foot']}"

    return MARKED.sub(fill, page)


def with_rules(manifest: str) -> str:
    """The manifest for the Prometheus Operator, whose last object has the alerts of the compose profile."""
    rules = ALERTS.read_text(encoding="utf-8").partition("\ngroups:\n")[2]
    return manifest[: manifest.rindex("\n  groups:\n")] + "\n" + indent(f"groups:\n{rules}", "  ")


def main() -> None:
    """Rewrite the tables of all pages, and the rules for the Prometheus Operator."""
    manifest = MANIFEST.read_text(encoding="utf-8")
    if (new := with_rules(manifest)) != manifest:
        MANIFEST.write_text(new, encoding="utf-8")
        print(f"{MANIFEST.relative_to(ROOT)} has new rules")
    for path in TABLE_PAGES:
        page = path.read_text(encoding="utf-8")
        if (new := rewritten(page)) != page:
            path.write_text(new, encoding="utf-8")
            print(f"{path.relative_to(ROOT)} has new tables")


if __name__ == "__main__":
    main()
