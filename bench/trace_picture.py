"""The trace of one job of the running service, as a picture for docs/tuning.md.

    python -m bench.trace_picture [--minutes 5] [--threads 1] [--workers 2]

Starts the service with the demo model and a collector on loopback, submits a talk, and draws the spans of its
job, with the request that submitted it. Prints the seconds of each kind of span.
"""

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from bench.drawing import Lane, timeline
from bench.measuring import Table
from bench.otlp_collector import Collector, Span, collecting
from bench.recordings import talk_for
from bench.service import ROOT, finished_job, running_service, submit_job, wait_for

PICTURE = ROOT / "docs" / "images" / "trace.svg"
WAITING = "wait for a worker"
MOST_WAITING = "windows waiting, up to"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0, help="of the recording")
    parser.add_argument("--threads", type=int, default=1, help="of each worker")
    parser.add_argument("--workers", type=int, default=2, help="on the CPU")
    parser.add_argument("--svg", type=Path, default=PICTURE, help="file for the picture")
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, collecting() as collector:
        recording = talk_for(Path(folder), 60 * parsed.minutes).path
        settings = {
            "WHISPER_CPU_WORKERS": str(parsed.workers),
            "WHISPER_CPU_THREADS": str(parsed.threads),
            **{name: str(value) for name, value in collector.settings.items()},
        }
        with running_service(**settings) as client:
            finished_job(client, submit_job(client, recording))  # the first one starts the media workers
            job = str(finished_job(client, submit_job(client, recording))["id"])
            wait_for(lambda: any(span.name == "job" and span.trace == job for span in collector.spans), 30)
    spans = collector.of(job)
    title = f"A job of {parsed.minutes:g} minutes, {parsed.workers} workers of {parsed.threads} thread each"
    parsed.svg.write_text(timeline(title, lanes(collector, spans), "s"))
    print(table(spans))


def lanes(collector: Collector, spans: Sequence[Span]) -> list[Lane]:
    """What to draw, from the first byte of the upload: times in s."""
    job = next(span for span in spans if span.name == "job")
    request = next(span for span in collector.spans if (span.trace, span.id) in job.links)
    rows: dict[str, list[tuple[str, float, float]]] = defaultdict(list)

    def draw(row: str, span: Span) -> None:
        rows[row].append((span.name, span.start - request.start, span.end - request.start))

    upload = next(span for span in collector.spans if span.parent == request.id)
    draw("server", upload)
    for span in spans:
        if span.name in ("wait in the queue", "store result"):
            draw("server", span)
    by_id = {span.id: span for span in spans}
    for span in sorted(spans, key=lambda span: span.attributes.get("whisperfleet.media_worker", 0)):
        if span.name in ("decode recording", "detect speech"):
            draw(f"media worker {span.attributes['whisperfleet.media_worker']}", span)
    for span in spans:
        if span.name == WAITING:
            draw(MOST_WAITING, span)
    for span in sorted(spans, key=lambda span: span.attributes.get("whisperfleet.slot", 0)):
        if span.parent in by_id and by_id[span.parent].name == "batch":
            draw(f"slot {span.attributes['whisperfleet.slot']}", span)
    return [Lane(name, tuple(bars), stacked=name == MOST_WAITING) for name, bars in rows.items()]


def table(spans: Sequence[Span]) -> Table:
    """How many spans of each name there are, and what they took together."""
    taken: dict[str, list[float]] = defaultdict(list)
    for span in spans:
        taken[span.name].append(span.end - span.start)
    rows: list[list[object]] = [[name, len(times), f"{sum(times):.2f}"] for name, times in taken.items()]
    return Table("Spans of the job", ["name", "spans", "together, s"], rows)


if __name__ == "__main__":
    main()
