"""The time of each stage of one request, from its first byte to its subtitles, as a table and as a chart.

    whisperfleet bench stages [--minutes 5] [--threads 1] [--repetitions 5] [--json FILE]

The service runs in this process with the `inline` engine, so that each stage can be timed. Media workers are
separate processes as usual. If several stages run at the same moment, only the first of these counts: the
worker's stages, the server's work, media work. Media work beside a busy worker costs no wall time.
"""

import asyncio
import inspect
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import uvicorn

from app.api.audio import openai_responses
from app.engines.plan import make_plan
from app.intake.file_sink import FileSink
from app.main import create_app
from app.media.worker_slot import MediaWorkerSlot
from app.recording import pipeline
from app.recording.service import TranscriptionService
from app.settings import load_settings
from app.telemetry.logs import configure_logs
from bench.command import Options
from bench.drawing import stacked_bars
from bench.measuring import Figures, Table, median
from bench.peers import ENGINE_STAGES, clocked
from bench.recordings import TALK, talk_for
from bench.throughput import BATCH_SIZE
from workers.media import tasks as media
from workers.whisper import worker as whisper

CHART = Path(__file__).with_name("stages.svg")
# In the order in which they count if several run at once.
STAGES = (*ENGINE_STAGES, "rest of the worker", "merge and cues", "upload", "decode", "speech", "waiting")

Interval = tuple[str, float, float]  # stage, start and end (s)


def measure(options: Options, folder: Path) -> tuple[Figures, list[Table]]:
    """Measure the median wall time of each stage, and write the chart."""
    minutes = options.lengths(5)[0]
    recording = talk_for(folder, 60 * minutes, talk=options.talk)
    runs = asyncio.run(_run(recording.path, folder, options))
    alone = {stage: median([run[1].get(stage, 0.0) for run in runs]) for stage in STAGES[:-1]}
    wall = {stage: median([run[0][stage] for run in runs]) for stage in STAGES}
    wall_s = median([sum(run[0].values()) for run in runs], 2)
    if not options.quick:
        title = f"{minutes:g} minutes of talk, upload to SRT: {wall_s} s"
        CHART.write_text(stacked_bars(title, {"wall time": wall, "work done": alone}, "s"))
    columns = ["stage", "of the wall time, s", "work done, overlap included, s"]
    rows = [[stage, f"{wall[stage]:.2f}", f"{alone.get(stage, 0):.2f}"] for stage in STAGES]
    figures = {"minutes": minutes, "wall_s": wall_s, "of_the_wall_time_s": wall, "work_s": alone}
    return figures, [Table(f"Where the time goes: {minutes:g} minutes, {wall_s} s", columns, rows)]


async def _run(path: Path, folder: Path, options: Options) -> list[tuple[dict[str, float], dict[str, float]]]:
    """For each run the seconds of wall time by stage, and the seconds of work."""
    settings = load_settings(
        model="demo",
        device="cpu",
        engine="inline",
        cpu_threads=options.threads,
        cpu_workers=1,
        batch_size=BATCH_SIZE,
        data_dir=folder / "data",
        log_level="error",
    )
    configure_logs(settings)
    service = TranscriptionService(settings, make_plan(settings))
    noted: list[Interval] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(create_app(settings, service), log_config=None))
        serving = asyncio.create_task(server.serve([listener]))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with httpx.AsyncClient(base_url=url, timeout=None, trust_env=False) as client:
            # The socket is open: requests wait until the server answers.
            (await client.get("/v1/models")).raise_for_status()
            await _request_srt(client, TALK)  # waits until the model is loaded
            with _clocks(lambda *interval: noted.append(interval)):
                runs = []
                for _ in range(1 + options.repetitions):
                    noted.clear()
                    began = time.perf_counter()
                    await _request_srt(client, path)
                    runs.append(_by_stage(noted, began, time.perf_counter()))
        server.should_exit = True
        await serving
    return runs[1:]


async def _request_srt(client: httpx.AsyncClient, path: Path) -> None:
    # Not an open file: httpx's async client accepts only bytes here.
    data = {"model": "whisper-1", "response_format": "srt"}
    content = path.read_bytes()  # noqa: ASYNC240
    answer = await client.post("/v1/audio/transcriptions", files={"file": (path.name, content)}, data=data)
    answer.raise_for_status()


@contextmanager
def _clocks(note: Callable[[str, float, float], None]) -> Iterator[None]:
    """Call `note(stage, start, end)` after every stage."""

    def clock(work: Callable[..., Any], stage: Callable[..., str]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(work):

            async def run_async(*args: Any, **kwargs: Any) -> Any:
                began = time.perf_counter()
                try:
                    return await work(*args, **kwargs)
                finally:
                    note(stage(*args), began, time.perf_counter())

            return run_async

        def run(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return work(*args, **kwargs)
            finally:
                note(stage(*args), began, time.perf_counter())

        return run

    def of_media(slot: MediaWorkerSlot, calls: list[Any], *_: object) -> str:
        return "decode" if calls[0].function is media.decode else "speech"

    with ExitStack() as stack:
        stack.enter_context(clocked(note))
        for owner, name, stage in (
            (FileSink, "drain", lambda *_: "upload"),
            (FileSink, "finish", lambda *_: "upload"),
            (MediaWorkerSlot, "run", of_media),
            (whisper, "decode", lambda *_: "rest of the worker"),
            (pipeline, "clip_segments", lambda *_: "merge and cues"),
            (openai_responses, "render_transcript", lambda *_: "merge and cues"),
        ):
            stack.enter_context(patch.object(owner, name, clock(getattr(owner, name), stage)))
        yield


def _by_stage(noted: list[Interval], began: float, ended: float) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds of wall time by stage, which add up to the total, and seconds of work by stage."""
    work: dict[str, float] = defaultdict(float)
    for stage, start, end in noted:
        work[stage] += end - start
    work["rest of the worker"] -= sum(work[stage] for stage in ENGINE_STAGES)
    edges = sorted({began, ended, *(edge for _, *span in noted for edge in span)})
    wall = dict.fromkeys(STAGES, 0.0)
    for start, end in pairwise(edges):
        running = {stage for stage, first, last in noted if first <= start and end <= last}
        wall[next((stage for stage in STAGES if stage in running), "waiting")] += end - start
    return wall, dict(work)
