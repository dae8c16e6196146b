"""The metrics of the service: names, labels, what they mean, and where their values come from."""

import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from app.api.http.admission import Admission
from app.api.http.requests import RequestCounts
from app.api.operation.system import VERSION
from app.jobs.job import Status
from app.jobs.webhooks.delivery import Attempt
from app.scheduling.tasks import STATES, Outcome, RestartReason
from app.telemetry.histogram import Histogram
from workers.messages import SAMPLE_RATE

if TYPE_CHECKING:
    from app.jobs.service import JobService
    from app.transcription.service import TranscriptionService

PREFIX = "whisperfleet_"

Samples = Iterable[tuple[tuple[str, ...], float]]  # the values of the labels, and the value


@dataclass(frozen=True, slots=True)
class Sources:
    """The parts of the service that count."""

    service: "TranscriptionService"
    jobs: "JobService"
    admission: Admission
    requests: RequestCounts


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric. The name is without `PREFIX`, and that of a counter ends in `_total`.

    `read` returns a number or a histogram if there are no labels, else samples. It never waits. None: not
    known now.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    read: Callable[[Sources], Samples | float | Histogram | None]
    # With all values of each, or an empty tuple if they depend on the machine or on the endpoints.
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


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


def _gpu_memory(source: Sources) -> Samples:
    for gpu, usage in source.service.fleet.gpus.by_name().items():
        if usage.memory_used is not None and usage.memory_total is not None:
            yield (gpu, "used"), usage.memory_used
            yield (gpu, "total"), usage.memory_total


def _gpu_utilisation(source: Sources) -> Samples:
    for gpu, usage in source.service.fleet.gpus.by_name().items():
        if usage.utilisation is not None:
            yield (gpu,), usage.utilisation


METRICS = (
    Metric(
        "http_requests_total",
        "counter",
        "Requests, by method, path template and status. Counted when the answer begins, or with status 499 "
        "when the client leaves before. Unknown paths count as unmatched, unknown methods as other.",
        lambda source: source.requests.requests.items(),
        {"method": (), "route": (), "status": ()},
    ),
    Metric(
        "http_request_seconds",
        "histogram",
        "Time from the arrival of a request to the beginning of the answer, with the upload. How long an "
        "event stream or a download lasts after that does not count, nor do requests with status 499.",
        lambda source: source.requests.seconds,
    ),
    Metric(
        "jobs",
        "gauge",
        "Jobs that are stored, by status.",
        lambda source: (((status.value,), n) for status, n in source.jobs.store.counts.by_status().items()),
        {"status": tuple(status.value for status in Status)},
    ),
    Metric(
        "queued_clips",
        "gauge",
        "Clips that wait for a worker.",
        lambda source: source.service.fleet.backlog()[0],
    ),
    Metric(
        "queue_oldest_seconds",
        "gauge",
        "How long the clip that waits longest has waited; 0 if none waits.",
        lambda source: source.service.fleet.backlog()[1],
    ),
    Metric(
        "clips_total",
        "counter",
        "Clips that a worker has answered, by what became of their batch: ok; failed: one of its clips "
        "failed; requeued: they are tried again.",
        _clips,
        {"slot": (), "outcome": tuple(outcome.value for outcome in Outcome)},
    ),
    Metric(
        "batch_clips",
        "histogram",
        "Clips in a batch that succeeded.",
        lambda source: source.service.fleet.ledger.batch_clips,
    ),
    Metric(
        "batch_seconds",
        "histogram",
        "Time that a worker took for a batch that succeeded.",
        lambda source: source.service.fleet.ledger.batch_seconds,
    ),
    Metric(
        "audio_seconds_total",
        "counter",
        "Length of the clips that were transcribed.",
        lambda source: source.service.fleet.ledger.samples / SAMPLE_RATE,
    ),
    Metric(
        "worker_state",
        "gauge",
        "1 for the state that a worker has, 0 for the others. A worker that is failed is in quarantine, or "
        "could not start.",
        _worker_states,
        {"slot": (), "state": STATES},
    ),
    Metric(
        "node_workers",
        "gauge",
        "Workers on a node of the Ray cluster, by state. Missing for nodes without workers, and with other "
        "engines.",
        _node_workers,
        {"node": (), "state": STATES},
    ),
    Metric(
        "worker_restarts_total",
        "counter",
        "Times that the process of a worker was replaced: it crashed or was killed (crash), did not answer "
        "(hang), its GPU failed (device), memory was short or is there again (memory), a fault of the "
        "service (error), or it was lost with its node or the connection to it (lost).",
        _worker_restarts,
        {"slot": (), "reason": tuple(reason.value for reason in RestartReason)},
    ),
    Metric(
        "gpu_memory_bytes",
        "gauge",
        "Memory of a GPU: used by all processes, and total. Missing if NVML does not say.",
        _gpu_memory,
        {"gpu": (), "kind": ("used", "total")},
    ),
    Metric(
        "gpu_utilisation_ratio",
        "gauge",
        "Part of the last moments in which a GPU computed, 0 to 1. Missing if NVML does not say, as for MIG "
        "instances.",
        _gpu_utilisation,
        {"gpu": ()},
    ),
    Metric(
        "media_busy_ratio",
        "gauge",
        "Part of the media workers that decode or find speech now, 0 to 1.",
        lambda source: source.service.media.pool.busy_ratio,
    ),
    Metric(
        "webhook_deliveries_total",
        "counter",
        "Attempts to deliver a webhook: delivered, retried (failed, a later attempt follows), given_up "
        "(failed for good).",
        lambda source: (((attempt.value,), source.jobs.webhooks.attempts[attempt]) for attempt in Attempt),
        {"outcome": tuple(attempt.value for attempt in Attempt)},
    ),
    Metric(
        "uploads_in_progress",
        "gauge",
        "Recordings that are being received.",
        lambda source: source.admission.uploads.held,
    ),
    Metric(
        "disk_free_bytes",
        "gauge",
        "Free bytes on the disk of the data folder, of which the last 256 MiB are never used. Missing if "
        "the disk does not answer.",
        lambda source: source.service.media.folder.disk.free_bytes.latest,
    ),
    Metric(
        "build_info",
        "gauge",
        "1; its labels are the versions of the service and of Python.",
        lambda source: [((VERSION, platform.python_version()), 1)],
        {"version": (), "python": ()},
    ),
)
