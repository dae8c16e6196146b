"""How long a part that is transcribed again takes: by itself, beside jobs of ten hours, and late in one.

    python -m bench.again [--hours 10] [--beside 1] [--repetitions 9] [--quick] [--json FILE]

One simulated worker, whose batches of 8 windows take 0.7 to 0.8 s. The long recordings are FLAC files.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from bench.command import parser_of
from bench.measuring import Figures, Table, machine, median, write_json
from bench.recordings import TALK, write
from bench.service import finished_job, job_row, running_service, submit_job, wait_for

WORKER = {
    "WHISPER_ENGINE": "simulated",
    "WHISPER_MODEL": "",
    "WHISPER_DEVICE": "",
    "WHISPER_CPU_WORKERS": "1",
}
PART = {"start": 5.0, "end": 15.0}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--hours", type=float, default=10.0, help="of each long recording")
    parser.add_argument("--beside", type=int, default=1, help="long jobs that run meanwhile")
    parser.add_argument("--repetitions", type=int, default=9, help="measured rounds")
    parsed = parser.parse_args()
    if parsed.quick:
        parsed.hours, parsed.repetitions = 0.2, 1
    with tempfile.TemporaryDirectory() as folder:
        long = Path(folder) / "long.flac"
        write(long, 3600 * parsed.hours)
        figures: Figures = {
            "machine": machine(),
            **_beside(long, parsed.beside, parsed.repetitions),
            **_late(long, 3600 * parsed.hours, parsed.repetitions),
        }
    rows = [
        [name, f"{median(times):.2f}", f"{max(times):.2f}"]
        for name, times in figures.items()
        if name != "machine"
    ]
    print(Table("A part of 10 s again, from the request to the new text", ["s", "median", "slowest"], rows))
    if parsed.json:
        write_json(parsed.json, figures)


def _beside(long: Path, count: int, repetitions: int) -> Figures:
    with running_service(**WORKER, WHISPER_SIMULATED="batch=8,fixed_ms=350,clip_ms=40,token_ms=1") as client:
        job = submit_job(client, TALK)
        finished_job(client, job)
        alone = [_again(client, job, PART) for _ in range(repetitions)]
        running = [submit_job(client, long) for _ in range(count)]
        wait_for(
            lambda: all((job_row(client, each)["progress"] or {}).get("clips_done") for each in running), 600
        )
        beside = [_again(client, job, PART) for _ in range(repetitions)]
        assert job_row(client, running[-1])["status"] == "running", "the long recordings were too short"
    return {"by itself": alone, f"beside {count} of the long jobs": beside}


def _late(long: Path, seconds: float, repetitions: int) -> Figures:
    with running_service(**WORKER, WHISPER_SIMULATED="fixed_ms=1,clip_ms=1,token_ms=0") as client:
        job = submit_job(client, long)
        finished_job(client, job)
        part = {"start": seconds - 60, "end": seconds - 50}
        return {"at the end of a long one": [_again(client, job, part) for _ in range(repetitions)]}


def _again(client: httpx.Client, job: str, part: dict[str, Any]) -> float:
    """The seconds until the new text is there."""
    began = time.perf_counter()
    child = client.post(f"/v1/jobs/{job}/again", json=part).raise_for_status().json()["id"]
    finished_job(client, child, pause_s=0.02)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
