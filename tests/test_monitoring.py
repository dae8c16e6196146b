"""The compose profile `monitoring`: Prometheus, its alerts, and the dashboard name only what there is."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from app.api.operation.metric_list import METRICS, PREFIX, Metric
from tests.monitoring import ALERTS, FOLDER, QUERIES, ROOT, Query, grouping_labels, panels, selectors
from tests.prometheus import program

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
PROMETHEUS, GRAFANA = (COMPOSE["services"][name] for name in ("prometheus", "grafana"))
CONFIG = yaml.safe_load((FOLDER / "prometheus" / "prometheus.yml").read_text())
GUIDE = (ROOT / "docs" / "monitoring.md").read_text()

TARGET_LABELS = {"instance", "job"}  # that Prometheus adds


def metric_of(name: str) -> Metric:
    """The metric of a name in a query. A histogram has three."""
    names = {PREFIX + metric.name: metric for metric in METRICS if metric.kind != "histogram"}
    for metric in METRICS:
        if metric.kind == "histogram":
            names |= {f"{PREFIX}{metric.name}_{part}": metric for part in ("bucket", "sum", "count")}
    assert name in names, f"there is no {name}"
    return names[name]


def promtool(*arguments: object, input: str | None = None) -> str:
    done = subprocess.run(
        [program("promtool"), *map(str, arguments)], input=input, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.where)
def test_a_query_names_metrics_and_labels_that_there_are(query: Query) -> None:
    found = list(selectors(query.text))
    assert found or "up{" in query.text
    known = set(TARGET_LABELS)
    for name, matchers in found:
        metric = metric_of(name)
        labels = TARGET_LABELS | set(metric.labels) | ({"le"} if name.endswith("_bucket") else set())
        known |= labels
        for matcher in matchers:
            assert matcher.label in labels, f"{name} has no label {matcher.label}"
            for value in matcher.value.split("|") if metric.labels.get(matcher.label) else ():
                assert value in metric.labels[matcher.label]
    assert grouping_labels(query.text) <= known
    # An aggregation keeps the labels by which it groups, and no other.
    is_aggregated = re.match(r"(sum|max|min|avg|histogram_quantile)\b", query.text) is not None
    assert set(query.shown) <= (grouping_labels(query.text) if is_aggregated else known)


def test_each_metric_is_shown() -> None:
    shown = {metric_of(name).name for query in QUERIES for name, _ in selectors(query.text)}
    assert shown == {metric.name for metric in METRICS}


def test_queries_in_the_guide_name_metrics_that_there_are() -> None:
    prose = GUIDE.partition("<!-- end of table -->")[2]
    for name, matchers in selectors(prose):
        assert {matcher.label for matcher in matchers} <= set(metric_of(name).labels)


def test_alert_rules_are_valid_and_fire_when_they_should() -> None:
    folder = FOLDER / "prometheus"
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", folder / "alerts.yml")
    assert "SUCCESS" in promtool("test", "rules", folder / "alerts_test.yml")


def test_the_configuration_is_valid(tmp_path: Path) -> None:
    shutil.copytree(FOLDER / "prometheus", tmp_path, dirs_exist_ok=True)
    key = tmp_path / "key"
    key.write_text("sk-1")
    config = tmp_path / "prometheus.yml"
    config.write_text(config.read_text().replace("/run/secrets/metrics_key", str(key)))
    assert "SUCCESS" in promtool("check", "config", config)


def test_queries_of_the_dashboard_are_valid(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": query.text.replace("$__rate_interval", "5m")}
        for number, query in enumerate(QUERIES)
        if not query.text.startswith("label_values(")
    ]
    path = tmp_path / "dashboard.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", path)


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_what_is_wrong_and_what_to_do(name: str) -> None:
    alert = ALERTS[name]
    assert alert["labels"]["severity"] in ("critical", "warning")
    assert alert["annotations"].keys() == {"summary", "description", "docs"}
    assert alert["annotations"]["docs"] == f"docs/monitoring.md#{name.lower()}"
    assert f"\n### {name}\n" in GUIDE
    assert "for" in alert or "increase(" in alert["expr"]


def test_prometheus_reads_the_service_of_either_profile() -> None:
    [job] = CONFIG["scrape_configs"]
    [target] = job["static_configs"][0]["targets"]
    for profile in ("cpu", "gpu"):
        service = COMPOSE["services"][profile]
        [alias] = service["networks"]["default"]["aliases"]
        assert target == f"{alias}:{service['environment']['WHISPER_PORT']}"
    [secret] = PROMETHEUS["secrets"]
    assert job["authorization"]["credentials_file"] == f"/run/secrets/{secret}"


def test_grafana_needs_a_password_from_the_environment() -> None:
    assert GRAFANA["environment"]["GF_SECURITY_ADMIN_PASSWORD"] == "${GRAFANA_PASSWORD:-}"
    assert GRAFANA["environment"]["GF_AUTH_ANONYMOUS_ENABLED"] == "false"
    assert GRAFANA["environment"]["GF_USERS_ALLOW_SIGN_UP"] == "false"
    shell, option, script = GRAFANA["entrypoint"]
    script = script.replace("$$", "$").replace("exec /run.sh", "echo started")
    for password, status, out, err in (("", 1, "", "GRAFANA_PASSWORD"), ("s3cret", 0, "started", "")):
        done = subprocess.run(
            [shell, option, script],
            env={"GF_SECURITY_ADMIN_PASSWORD": password, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout.strip()) == (status, out)
        assert err in done.stderr


def test_grafana_finds_its_data_and_its_dashboard() -> None:
    provisioning = FOLDER / "grafana" / "provisioning"
    [source] = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    [provider] = yaml.safe_load((provisioning / "dashboards" / "whisperfleet.yml").read_text())["providers"]
    targets = [mount.split(":")[1] for mount in GRAFANA["volumes"]]
    assert provider["options"]["path"] in targets
    assert "/etc/grafana/provisioning" in targets
    uids = {panel["datasource"]["uid"] for panel in panels() if panel["type"] != "row"}
    uids |= {target["datasource"]["uid"] for panel in panels() for target in panel.get("targets", ())}
    assert uids == {source["uid"]}
