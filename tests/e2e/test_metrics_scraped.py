"""A real Prometheus reads a real service, with a key, and answers the queries of dashboard and alerts."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from app.api.operation.metric_list import METRICS, PREFIX
from tests.e2e.fixtures import Commands
from tests.e2e.running import DATA, SIMULATED, Server, free_port, wait_for
from tests.monitoring import ALERTS, FOLDER, QUERIES
from tests.prometheus import program

pytestmark = pytest.mark.timeout(120)

KEY = "sk-prometheus"
MISSING_HERE = ("gpu_", "node_")  # metrics of machines with GPUs, and of clusters


@pytest.fixture(scope="module")
def watched(module_commands: Commands) -> Server:
    """A service that has worked, and replaced a worker that crashed."""
    settings = SIMULATED | {
        "WHISPER_GPUS": "0,1",
        "WHISPER_SIMULATED": "crash_at=1:0,clip_ms=5,fixed_ms=1",
        "WHISPER_API_KEYS": f"sk-other,{KEY}",
        "WHISPER_METRICS_BY_OWNER": "true",
    }
    server = module_commands.ready(key=KEY, **settings)
    server.finished(server.submit(DATA / "talk.flac")["id"])
    server.text(DATA / "short00.flac")
    wait_for(lambda: sum(row["restarts"] for row in server.workers()))
    return server


class Prometheus:
    """The configuration of the compose profile, with the address and the key of a server."""

    def __init__(self, folder: Path, server: Server) -> None:
        shutil.copytree(FOLDER / "prometheus", folder, dirs_exist_ok=True)
        (folder / "key").write_text(f"{KEY}\n")
        config = yaml.safe_load((folder / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        [job] = config["scrape_configs"]
        job["authorization"]["credentials_file"] = str(folder / "key")
        job["static_configs"] = [{"targets": [f"127.0.0.1:{server.port}"]}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        port = free_port()
        self._log = (folder / "log").open("wb")
        self._process = subprocess.Popen(
            [
                program("prometheus"),
                f"--config.file={folder}/prometheus.yml",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._client = httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", trust_env=False)

    def query(self, text: str) -> list[dict[str, Any]]:
        try:
            answer = self._client.get("/query", params={"query": text})
        except httpx.TransportError:
            return []  # it starts
        if answer.status_code == 503:
            return []
        assert answer.status_code == 200, answer.text
        result: list[dict[str, Any]] = answer.json()["data"]["result"]
        return result

    def value(self, text: str) -> float | None:
        found = self.query(text)
        return float(found[0]["value"][1]) if found else None

    def end(self) -> None:
        self._client.close()
        self._process.terminate()
        try:
            self._process.wait(10)
        finally:
            self._process.kill()
            self._log.close()


@pytest.fixture(scope="module")
def prometheus(watched: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """It has read the service a few times."""
    running = Prometheus(tmp_path_factory.mktemp("prometheus"), watched)
    try:
        wait_for(lambda: (running.value('count_over_time(up{job="whisperfleet"}[1m])') or 0) >= 3)
        yield running
    finally:
        running.end()


def test_promtool_finds_nothing_to_improve(watched: Server) -> None:
    text = watched.client.get("/metrics").raise_for_status().text
    check = [program("promtool"), "check", "metrics"]
    done = subprocess.run(check, input=text, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_counters_agree_with_the_workers(watched: Server) -> None:
    text = watched.client.get("/metrics").raise_for_status().text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]

    def total(name: str, **labels: str) -> float:
        return sum(
            sample.value
            for sample in samples
            if sample.name == PREFIX + name and labels.items() <= sample.labels.items()
        )

    rows = watched.workers()
    assert total("clips_total", outcome="ok") == sum(row["clips"] for row in rows)
    assert total("audio_seconds_total") == pytest.approx(sum(row["audio_s"] for row in rows), abs=0.1)
    assert total("batch_seconds_count") == sum(row["batches"] for row in rows)
    assert total("worker_restarts_total", reason="crash") == sum(row["restarts"] for row in rows)
    assert total("jobs", status="succeeded") == 1


def test_prometheus_reads_every_metric_with_the_key(prometheus: Prometheus) -> None:
    assert prometheus.value('up{job="whisperfleet"}') == 1
    for metric in METRICS:
        name = PREFIX + metric.name + ("_count" if metric.kind == "histogram" else "")
        has_values = not metric.name.startswith(MISSING_HERE)
        assert bool(prometheus.query(name)) == has_values, name


@pytest.mark.parametrize("query", [query for query in QUERIES if query.where not in ALERTS])
def test_the_dashboard_shows_something(prometheus: Prometheus, query: Any) -> None:
    text = query.text.replace("$__rate_interval", "1m").replace("$instance", ".*")
    if text.startswith("label_values("):
        text = text.removeprefix("label_values(").partition(",")[0]
    may_be_empty = any(part in text for part in (*MISSING_HERE, "5..|429"))
    assert prometheus.query(text) or may_be_empty


def test_no_alert_fires_for_a_service_that_works(prometheus: Prometheus) -> None:
    assert prometheus.query('ALERTS{alertstate="firing"}') == []
    rules = prometheus._client.get("/rules").json()["data"]["groups"][0]["rules"]
    assert {rule["name"]: rule["health"] for rule in rules} == dict.fromkeys(ALERTS, "ok")
