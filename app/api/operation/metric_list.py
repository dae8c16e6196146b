"""The sources of the metrics' values. `metrics.toml` has their names, labels and texts."""

import platform
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from app.api.operation.system import VERSION
from app.intake.limits import Admission
from app.jobs.service import JobService
from app.jobs.webhooks.delivery import Attempt
from app.live.metrics import LiveMetrics
from app.pool.tasks import STATES, Outcome, RestartReason
from app.recording.service import TranscriptionService
from app.server.requests import RequestCounts
from app.telemetry.histogram import Histogram
from workers.messages import SAMPLE_RATE

PREFIX = "whisperfleet_"

# The values of the labels, and the value.
Samples = Iterable[tuple[tuple[str, ...], float | Histogram]]

_FILE = Path(__file__).with_name("metrics.toml")


@dataclass(frozen=True, slots=True)
class Sources:
    """The parts of the service that count."""

    service: TranscriptionService
    jobs: JobService
    admission: Admission
    requests: RequestCounts
    live: LiveMetrics


# Returns a number or a histogram if a metric has no labels, else samples; None: not known now. Never waits.
Read = Callable[[Sources], Samples | float | Histogram | None]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric. The name is without `PREFIX`, and that of a counter ends in `_total`."""

    name: str
    read: Read
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    # With all values of each, or none if they depend on the machine or on the endpoints.
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    is_shared: bool = False  # all server processes have the same value


def _worker_states(source: Sources) -> Samples:
    for slot, status in source.service.fleet.slot_statuses().items():
        for state in STATES:
            yield (str(slot), state), status.state == state


def _node_workers(source: Sources) -> Samples:
    counts = source.service.fleet.workers_by_node()
    for node in dict.fromkeys(node for node, _ in counts):
        for state in STATES:
            yield (node, state), counts[node, state]


def _worker_restarts(source: Sources) -> Samples:
    for slot, status in source.service.fleet.slot_statuses().items():
        for reason in RestartReason:
            yield (str(slot), reason.value), status.restarts_by[reason]


def _clips(source: Sources) -> Samples:
    for slot in source.service.fleet.slot_statuses():
        for outcome in Outcome:
            yield (str(slot), outcome.value), source.service.fleet.ledger.clips[slot, outcome]


def _audio_seconds(source: Sources) -> Samples:
    for model in source.service.fleet.catalogue.options:
        yield (model,), source.service.fleet.ledger.samples[model] / SAMPLE_RATE


def _gpu_memory(source: Sources) -> Samples:
    for gpu, usage in source.service.fleet.gpus.by_name().items():
        if usage.memory_used is not None and usage.memory_total is not None:
            yield (gpu, "used"), usage.memory_used
            yield (gpu, "total"), usage.memory_total


def _gpu_utilisation(source: Sources) -> Samples:
    for gpu, usage in source.service.fleet.gpus.by_name().items():
        if usage.utilisation is not None:
            yield (gpu,), usage.utilisation


def _deliveries(source: Sources) -> Samples:
    for attempt in Attempt:
        yield (attempt.value,), source.jobs.webhooks.attempts[attempt]


_READ: Mapping[str, Read] = {
    "http_requests_total": lambda source: source.requests.requests.items(),
    "http_request_seconds": lambda source: source.requests.seconds.items(),
    "jobs": lambda source: (((s.value,), n) for s, n in source.jobs.store.counts.items()),
    "jobs_ended_total": lambda source: (((s.value,), n) for s, n in source.jobs.ended.outcomes.items()),
    "job_seconds": lambda source: source.jobs.ended.seconds,
    "queued_clips": lambda source: source.service.fleet.backlog()[0],
    "queue_oldest_seconds": lambda source: source.service.fleet.backlog()[1],
    "clips_total": _clips,
    "batch_clips": lambda source: source.service.fleet.ledger.batch_clips,
    "batch_seconds": lambda source: source.service.fleet.ledger.batch_seconds,
    "audio_seconds_total": _audio_seconds,
    "owner_audio_seconds": lambda source: source.service.budgets.used_by_owner(),
    "worker_state": _worker_states,
    "node_workers": _node_workers,
    "worker_restarts_total": _worker_restarts,
    "gpu_memory_bytes": _gpu_memory,
    "gpu_utilisation_ratio": _gpu_utilisation,
    "media_busy_ratio": lambda source: source.service.media.pool.busy_ratio,
    "webhook_deliveries_total": _deliveries,
    "live_streams": lambda source: source.live.open,
    "live_first_words_seconds": lambda source: source.live.first_words_s,
    "live_final_seconds": lambda source: source.live.final_s,
    "live_drafts_dropped_total": lambda source: source.live.drafts_dropped,
    "uploads_in_progress": lambda source: source.admission.uploads.held,
    "disk_free_bytes": lambda source: source.service.media.folder.disk.free_bytes.latest,
    "build_info": lambda source: [((VERSION, platform.python_version()), 1)],
}

METRICS = tuple(
    Metric(name, _READ[name], **texts) for name, texts in tomllib.loads(_FILE.read_text("utf-8")).items()
)
