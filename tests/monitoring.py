"""The alerts and the dashboard of the compose profile `monitoring`, and what their queries name."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docker" / "monitoring"
[GROUP] = yaml.safe_load((FOLDER / "prometheus" / "alerts.yml").read_text())["groups"]
ALERTS: dict[str, Any] = {rule["alert"]: rule for rule in GROUP["rules"]}
DASHBOARD = json.loads((FOLDER / "grafana" / "dashboards" / "whisperfleet.json").read_text())

_SELECTOR = re.compile(r"\b(whisperfleet_\w+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
_GROUPING = re.compile(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)")


class Query(NamedTuple):
    where: str
    text: str
    shown: tuple[str, ...] = ()  # labels that a legend or an annotation shows


def panels() -> Iterator[dict[str, Any]]:
    for panel in DASHBOARD["panels"]:
        yield panel
        yield from panel.get("panels", ())


def queries() -> Iterator[Query]:
    for panel in panels():
        for target in panel.get("targets", ()):
            shown = tuple(re.findall(r"\{\{\s*(\w+)\s*\}\}", target["legendFormat"]))
            yield Query(f"{panel['title']} {target['refId']}", target["expr"], shown)
    for variable in DASHBOARD["templating"]["list"]:
        yield Query(f"${variable['name']}", variable["query"]["query"])
    for name, alert in ALERTS.items():
        shown = tuple(re.findall(r"\$labels\.(\w+)", " ".join(alert["annotations"].values())))
        yield Query(name, alert["expr"], shown)


QUERIES = list(queries())


class Matcher(NamedTuple):
    label: str
    operator: str
    value: str


def selectors(query: str) -> Iterator[tuple[str, list[Matcher]]]:
    """The metrics of the service in a query, and the matchers of each."""
    for name, matchers in _SELECTOR.findall(query):
        yield name, [Matcher(*found) for found in _MATCHER.findall(matchers)]


def grouping_labels(query: str) -> set[str]:
    """The labels by which a query groups."""
    return {label.strip() for labels in _GROUPING.findall(query) for label in labels.split(",")}
