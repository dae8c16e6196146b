"""What an hour of audio costs each part of the front end, for the model of bench/capacity.py.

    python -m bench.scale [PART ...] [--url URL] [--before FOLDER] [--rounds N] [--quick] [--record]

Without a part, all of them. `--url`: an empty PostgreSQL database, which is measured instead of SQLite.
`--before`: another checkout, which *server* measures in turns with this one. `--record` writes the figures to
bench/costs.json, from which the tables of docs/scale.md are made. All times are CPU times, which other
programs on the machine hardly change, except where a table says "wall".

*dispatcher*: its CPU time for each window on a virtual clock, while there is enough work for all slots, and
while so little is left that it plans the last batches.
*schedules*: how many times as fast as one slot many slots transcribe ten hours, on a virtual clock.
*server*: jobs and requests of an hour, on 8 worker processes without a model that are 100 times as fast as
real time each, with replayed recordings (bench/server_costs.py), beside a fixed loop in Python. *load*: how
busy 1 to 8 such slots are, how fast the service answers, and what it takes. *uploads*: the body of a job,
512 MB. *media*: one core decodes mp3 and finds speech. *database*: results and progress of clips, as a job
stores them, 64 clips at a time.
"""

import asyncio
import itertools
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from app.common.options import Options
from app.database.connection import Database
from app.engines.simulated import SIMULATED, Simulation, simulated_result
from app.jobs.job import JobProgress, Stage, Submission
from app.jobs.running.clip_store import ClipStore
from app.jobs.storage.published_clips import PublishedClip
from app.jobs.storage.store import Store
from app.pool.batching import PLANNED_ROUNDS
from app.transcript.packed import pack_result
from app.transcript.timeline import ClipResult
from bench import server_load, virtual_clock
from bench.capacity import COSTS, GPUS
from bench.command import chosen, parser_of, silence_logs
from bench.lower_bound import lower_bound
from bench.measuring import Figures, machine, write_json
from bench.media import cpu_s
from bench.recordings import write, write_large
from bench.server_costs import HERE, THERE, compare, make_replay, same_text
from bench.server_costs import figures as server_figures
from bench.server_costs import tables as server_tables
from bench.server_tables import load_table
from bench.service import COMMAND, ROOT, started_service, submit_job
from bench.simulated_fleet import make_fleet, run_job, tokens_of, transcribe
from bench.speech_samples import drawn_clips
from workers.messages import SAMPLE_RATE, DecodingOptions, Window

SLOTS = (8, 64, 256, 1000)
BATCH = 8  # windows
ROUNDS, HOURS = 3, 2  # of `server`, and of audio in each
HOUR_S = 3600
SIMULATED_SERVICE = {"WHISPER_ENGINE": "simulated"}
UPLOAD_BYTES = 512 * 10**6
STORED_AT_ONCE = 64  # clips
WORDS = 60  # of a clip of 22 s


def dispatcher(folder: Path, *, quick: bool) -> Figures:
    """CPU time for each window (ms), by the number of slots."""
    counts = SLOTS[:1] if quick else SLOTS
    rounds = {"dispatcher_ms": 2 * PLANNED_ROUNDS, "planning_ms": 2}
    return {
        name: {str(slots): round(dispatcher_ms(slots, most), 3) for slots in counts}
        for name, most in rounds.items()
    }


def dispatcher_ms(slots: int, rounds: int, windows: int = 1000) -> float:
    """CPU time of one dispatcher for each window (ms), including the simulated workers and the event loop.

    Jobs of an hour have so many unfinished windows for each place in a batch. Each answer brings a new one.
    """
    clips = drawn_clips("lecture", 60)
    in_flight = slots * BATCH
    begin = in_flight // 4  # answers, until the slots are no longer in step

    async def work() -> float:
        fleet = make_fleet(slots, Simulation(batch=BATCH))
        fleet.start()
        await asyncio.sleep(1)
        answered = itertools.count(1)
        began: list[float] = []
        ended = asyncio.Event()

        async def client(number: int) -> None:
            for clip in itertools.islice(itertools.cycle(clips), number, None):
                await transcribe(fleet, f"job {number // len(clips)}", clip)
                count = next(answered)
                if count == begin:
                    began.append(time.process_time())
                elif count == begin + windows:
                    began.append(time.process_time())
                    ended.set()

        clients = [asyncio.create_task(client(number)) for number in range(rounds * in_flight)]
        await ended.wait()
        for task in clients:
            task.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        await fleet.stop()
        return 1000 * (began[1] - began[0]) / windows

    return virtual_clock.run(work())


def schedules(folder: Path, *, quick: bool) -> Figures:
    """How many times as fast as one slot many slots transcribe a recording, and the most that is possible."""
    minutes = 60 if quick else 600
    clips, simulation = drawn_clips("lecture", minutes), Simulation(batch=BATCH)
    windows = [tokens_of(clip, simulation) for clip in clips]
    one_s = run_job(clips, 1, simulation).makespan
    found = {}
    for slots in GPUS:
        least_s = lower_bound(windows, slots, simulation.cost, simulation.batch, simulation.host_ms)
        times_one = one_s / run_job(clips, slots, simulation).makespan
        found[str(slots)] = [round(times_one, 1), round(one_s / least_s, 1)]
    return {"times_one": found}


def server(
    folder: Path, *, quick: bool, url: str | None = None, before: Path | None = None, rounds: int = ROUNDS
) -> Figures:
    """CPU time of the server's process for an hour of audio (s), by part. Prints tables."""
    checkouts = {HERE: ROOT} | ({THERE: before.resolve()} if before else {})
    runs = compare(checkouts, folder, 1 if quick else rounds, 1 if quick else HOURS, url)
    print(*server_tables(runs), sep="\n\n")
    print(f"\nThe same text: {'yes' if same_text(runs) else 'no'}")
    return server_figures(runs[HERE]) if url is None else {}


def load(folder: Path, *, quick: bool) -> Figures:
    """What the server takes and how fast it answers, by the number and speed of its slots. Prints a table."""
    replay = make_replay(folder)
    cases = server_load.CASES[:1] if quick else server_load.CASES
    found = [
        server_load.measure(ROOT, replay, slots, speed, 3 if quick else server_load.SECONDS)
        for slots, speed in cases
    ]
    print(*load_table(found), sep="\n", flush=True)
    return {"load": found}


def uploads(folder: Path, *, quick: bool) -> Figures:
    """CPU time of the server's process for each GB that it receives, hashes and writes (s)."""
    size = UPLOAD_BYTES // (10 if quick else 1)
    path = folder / "large.wav"
    write_large(path, size, talk=False)
    settings = SIMULATED_SERVICE | {"WHISPER_DATA_DIR": str(folder / "data")}
    with started_service(COMMAND, ROOT, **settings) as (client, process):
        server = psutil.Process(process.pid)
        before = sum(server.cpu_times()[:2])
        job = submit_job(client, path)
        used_s = sum(server.cpu_times()[:2]) - before
        client.delete(f"/v1/jobs/{job}").raise_for_status()
    return {"upload_s_per_gb": round(used_s / (path.stat().st_size / 1e9), 3)}


def media(folder: Path, *, quick: bool) -> Figures:
    """CPU time of a media worker for an hour of mp3 (s)."""
    length_s = 300 if quick else HOUR_S
    path = folder / "hour.mp3"
    write(path, length_s)
    used = cpu_s(path, folder / "pcm")
    return {f"{name}_s": round(seconds * 3600 / length_s, 3) for name, seconds in used.items()}


def database(folder: Path, *, quick: bool, url: str | None = None) -> Figures:
    """Clips that the database stores in a second (wall), and the server's CPU time for each (ms).

    Other programs on the machine slow most rounds down: the fastest one counts.
    """
    name = "sqlite" if url is None else "postgresql"
    per_s, cpu_ms = asyncio.run(_store_clips(folder, url, rounds=5 if quick else 50))
    return {f"{name}_clips_per_s": round(per_s), f"{name}_cpu_ms": round(cpu_ms, 3)}


async def _store_clips(folder: Path, url: str | None, rounds: int) -> tuple[float, float]:
    database = Database(url, folder)
    await database.open()
    clips = ClipStore(database)
    clips.start()
    try:
        store = Store(database)
        job = await store.begin(await store.add(_submission()))
        took_s = []
        cpu_before = time.process_time()
        for number in range(rounds):
            began = time.perf_counter()
            keys = [
                (start, start + 1, None, 0)
                for start in range(number * STORED_AT_ONCE, (number + 1) * STORED_AT_ONCE)
            ]
            for key in keys:
                clips.put(job.number, key, 0, pack_result(_result()))
            await clips.flush()
            done = (number + 1) * STORED_AT_ONCE
            progress = JobProgress(Stage.TRANSCRIBING, 22.0 * done, None, done, None)
            published = [PublishedClip((key[0], key[1]), key) for key in keys]
            await store.store_progress({job.id: progress}, {job.id: published})
            took_s.append(time.perf_counter() - began)
        cpu_s = time.process_time() - cpu_before
    finally:
        await clips.stop()
        await database.close()
    return STORED_AT_ONCE / min(took_s), 1000 * cpu_s / (rounds * STORED_AT_ONCE)


def _submission() -> Submission:
    return Submission(
        filename="hour.mp3", file=None, size=10**7, sha256="ab" * 32, url=None, model=SIMULATED,
        options=Options(), webhook_url=None, owner="", idempotency_key=None, fingerprint="f" * 64,
    )  # fmt: skip


def _result() -> ClipResult:
    """The result of a clip, with word times."""
    samples = 22 * SAMPLE_RATE
    spans = 6  # each becomes a segment of ten words
    speech = tuple((samples * part // spans, samples * (part + 1) // spans) for part in range(spans))
    decoding = DecodingOptions(SIMULATED, language="en", word_timestamps=True)
    result = simulated_result(Window(b"", speech, decoding), Simulation())
    assert sum(len(segment.words) for segment in result.segments) == WORDS
    return ClipResult("en", (), result.segments)


PARTS: dict[str, Callable[..., Figures]] = {
    "dispatcher": dispatcher,
    "schedules": schedules,
    "server": server,
    "load": load,
    "uploads": uploads,
    "media": media,
    "database": database,
}


def record(figures: Figures) -> None:
    """Replace these figures among the recorded ones."""
    write_json(COSTS, json.loads(COSTS.read_text()) | figures if COSTS.exists() else figures)


def main() -> None:
    parser = parser_of(__doc__, PARTS)
    parser.add_argument("--url", help="of an empty PostgreSQL database")
    parser.add_argument("--before", type=Path, help="another checkout, for `server`")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of `server`")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/costs.json")
    parsed = parser.parse_args()
    parts = chosen(parser, parsed.parts, PARTS)
    silence_logs()
    found: Figures = {}
    for part, measure in parts.items():
        options = {"url": parsed.url} if part in ("database", "server") else {}
        if part == "server":
            options |= {"before": parsed.before, "rounds": parsed.rounds}
        with tempfile.TemporaryDirectory() as folder:
            measured = measure(Path(folder), quick=parsed.quick, **options)
        print(part, json.dumps(measured), f"load average {machine()['load_average']}", flush=True)
        found |= measured
    if parsed.record:
        record(found)
    if parsed.json:
        write_json(parsed.json, found)


if __name__ == "__main__":
    main()
