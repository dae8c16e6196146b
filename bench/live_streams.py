"""How soon, and how well, live speech becomes text: recordings played to `/v1/realtime` as they are spoken.

    .venv/bin/python bench/live_streams.py RECORDING… [--chunks 20,100,500] [--streams 1] [--model FOLDER]
        [--seconds 60] [--turns server_vad] [--files 0] [--url http://localhost:8000] [--events FOLDER]
        [--json OUT]

Each recording is FLAC or WAV; beside it may be its text, as JSON: {"language", "cues": [{"end", "text"}]}. It
is transcribed by upload first, which says when each word ends. Then it is played: a chunk is sent once its
last sample is spoken, and up to half a chunk later (the seed decides). All times are those of the client. A
delay of words contains the wait for the end of their chunk, its jitter, and the network.

- first words: from the end of a turn's first word until its first text arrived
- all words: the same for each word that was sent as agreed
- final: from `speech_stopped` until `completed`
- taken back: words sent as agreed, which the final text does not have in their place
- word error rate: of the final text, and of the upload
- CPU: on a machine that others use as well, it says more than the delays
- times: how far word times are from those of the upload: median, 95 %, share over 0.1 s

`--streams` play at once, each the next recording. So many `--files` are transcribed meanwhile: half an hour
of the first recording each. A new service has one worker with one thread.
"""

import asyncio
import base64
import io
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
from websockets.asyncio.client import ClientConnection, connect

sys.path.insert(0, str(Path(__file__).parents[1]))

from app.engines.model_files import DEMO_PATH
from bench.command import parser_of
from bench.live_scores import TimedWord, items_of, scores, summary, timed_words
from bench.measuring import Figures, machine, markdown, write_json
from bench.recordings import RATE, resampled
from bench.service import running_service, server_process

STREAM_RATE = 24_000  # Hz, of OpenAI's `audio/pcm`
FILE_S = 1800  # of each file beside the streams
SILENCE_S = 2.0  # after a recording: its last turn ends
PATIENCE_S = 60.0  # for the texts after it
HEALTH_S = 0.05  # between two probes
ONE_WORKER = {"WHISPER_CPU_WORKERS": "1", "WHISPER_CPU_THREADS": "1"}

Events = list[tuple[float, dict[str, Any]]]  # with their arrivals, s since the recording began


@dataclass(frozen=True)
class Sound:
    """A recording, and its transcript by upload."""

    name: str
    pcm: np.ndarray  # int16, 16 kHz, shape (n,)
    language: str | None
    truth: str | None
    uploaded: str = ""
    words: Sequence[TimedWord] = ()


@dataclass(frozen=True)
class Way:
    """How recordings are played."""

    chunk_ms: int
    streams: int
    turns: str | None
    seed: int


def load(path: Path, seconds: float | None) -> Sound:
    """A recording, or its first `seconds` of it; its true text only if all of it is played."""
    import soundfile

    pcm, rate = soundfile.read(path, dtype="int16")
    if rate != RATE or pcm.ndim != 1:
        raise SystemExit(f"{path}: convert it first: ffmpeg -i {path.name} -ac 1 -ar {RATE} OUT.flac")
    limit = len(pcm) if seconds is None else round(seconds * RATE)
    note = path.with_suffix(".json")
    known = json.loads(note.read_text()) if note.exists() else {}
    cues = [cue for cue in known.get("cues", ()) if cue.get("end", 0) * RATE <= limit]
    truth = " ".join(cue["text"] for cue in cues) if cues else None
    end = min(limit, round((cues[-1]["end"] + 0.3) * RATE)) if cues and limit < len(pcm) else limit
    return Sound(path.stem, pcm[:end], known.get("language"), truth)


def excerpts(sound: Sound, count: int, seconds: float) -> list[Sound]:
    """Parts of a recording, so long, that begin at places all over it; its beginning follows its end."""
    starts = [len(sound.pcm) * number // count for number in range(count)]
    return [
        replace(sound, pcm=np.roll(sound.pcm, -start)[: round(seconds * RATE)], truth=None)
        for start in starts
    ]


def upload(client: httpx.Client, sound: Sound) -> Sound:
    """The recording with its transcript by upload."""
    answer = client.post(
        "/asr",
        params={"output": "json", "encode": "false", "word_timestamps": "true"}
        | ({"language": sound.language} if sound.language else {}),
        files={"audio_file": ("sound.raw", sound.pcm.astype("<i2").tobytes())},
    ).raise_for_status()
    body = answer.json()
    words = [word for segment in body["segments"] for word in segment["words"]]
    return Sound(sound.name, sound.pcm, sound.language, sound.truth, body["text"], timed_words(words))


@contextmanager
def busy(client: httpx.Client, sound: Sound, jobs: int) -> Iterator[None]:
    """Jobs run, each with `FILE_S` of a recording."""
    import soundfile

    recording = io.BytesIO()
    if jobs:
        soundfile.write(recording, np.resize(sound.pcm, FILE_S * RATE), RATE, format="FLAC")
    addresses = []
    for _ in range(jobs):
        answer = client.post("/v1/jobs", files={"file": ("file.flac", recording.getvalue())})
        addresses.append(f"/v1/jobs/{answer.raise_for_status().json()['id']}")
    while addresses and client.get(addresses[0]).json()["progress"]["clips_done"] == 0:
        time.sleep(0.5)
    try:
        yield
        states = [client.get(address).json()["status"] for address in addresses]
        assert {*states} <= {"queued", "running"}, "the files were too short"
    finally:  # the service may be one that goes on
        for address in addresses:
            client.delete(address)


async def play(url: str, sound: Sound, way: Way, number: int) -> Events:
    """Play a recording, and return all events until its texts are complete."""
    chance = random.Random(f"{way.seed}:{number}:{way.chunk_ms}")
    audio = resampled(np.append(sound.pcm, np.zeros(round(SILENCE_S * RATE), np.int16)), RATE, STREAM_RATE)
    size = STREAM_RATE * way.chunk_ms // 1000
    address = url.replace("http", "ws", 1).rstrip("/") + "/v1/realtime?intent=transcription"
    events: Events = []
    async with connect(address, compression=None, max_size=None, proxy=None) as socket:
        await expect(socket, "session.created")
        await socket.send(json.dumps({"type": "session.update", "session": session(sound, way)}))
        await expect(socket, "session.updated")
        await asyncio.sleep(chance.uniform(0, 2) if way.streams > 1 else 0)
        began = time.monotonic()
        reading = asyncio.create_task(read(socket, events, began))
        try:
            for position in range(0, len(audio), size):
                chunk = audio[position : position + size]
                spoken_s = (position + len(chunk)) / STREAM_RATE
                at = began + spoken_s + chance.uniform(0, way.chunk_ms / 2000)
                await asyncio.sleep(at - time.monotonic())
                content = base64.b64encode(chunk.astype("<i2").tobytes()).decode()
                await socket.send(json.dumps({"type": "input_audio_buffer.append", "audio": content}))
            if way.turns is None:
                await socket.send(json.dumps({"type": "input_audio_buffer.commit"}))
                await asyncio.sleep(1)
            await settled(reading, events)
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
    return events


def session(sound: Sound, way: Way) -> dict[str, Any]:
    transcription = {"model": "whisper-1"} | ({"language": sound.language} if sound.language else {})
    turns = None if way.turns is None else {"type": way.turns}
    audio = {
        "format": {"type": "audio/pcm", "rate": STREAM_RATE},
        "transcription": transcription,
        "turn_detection": turns,
    }
    return {"type": "transcription", "audio": {"input": audio}}


async def expect(socket: ClientConnection, kind: str) -> None:
    """Wait for an event. Raises RuntimeError for an error."""
    async with asyncio.timeout(PATIENCE_S):
        while (event := json.loads(await socket.recv()))["type"] != kind:
            if event["type"] == "error":
                raise RuntimeError(event["error"]["message"])


async def read(socket: ClientConnection, events: Events, began: float) -> None:
    async for message in socket:
        at = time.monotonic() - began
        event = json.loads(message)
        events.append((at, event))
        if event["type"] == "error":
            print(f"error: {event['error']['message']}", file=sys.stderr)


async def settled(reading: asyncio.Task[None], events: Events) -> None:
    """Wait until all turns that were found are complete."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and not reading.done():
        if all(item.completed_at is not None or item.failed for item in items_of(events)):
            return
        await asyncio.sleep(0.05)


async def probe(url: str, process: psutil.Process | None, figures: Figures) -> None:
    """Ask `/health` again and again, and watch the memory of the server."""
    async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
        while True:
            began = time.perf_counter()
            await client.get("/health")
            figures["health_ms"].append((time.perf_counter() - began) * 1000)
            if process is not None:
                figures["peak_bytes"] = max(figures["peak_bytes"], process.memory_info().rss)
            await asyncio.sleep(HEALTH_S)


def cpu_s(process: psutil.Process | None) -> float:
    """CPU time of the server and its processes so far."""
    total = 0.0
    for each in [process, *process.children(recursive=True)] if process else []:
        with suppress(psutil.NoSuchProcess):
            total += sum(each.cpu_times()[:2])
    return total


async def measure(url: str, sounds: Sequence[Sound], way: Way, process: psutil.Process | None) -> Figures:
    """All streams of one way, with what they cost the server."""
    before = process.memory_info().rss if process else 0
    cost: Figures = {"health_ms": [], "peak_bytes": before}
    cpu_before_s = cpu_s(process)
    probing = asyncio.create_task(probe(url, process, cost))
    try:
        chosen = [sounds[number % len(sounds)] for number in range(way.streams)]
        logs = await asyncio.gather(*(play(url, sound, way, i) for i, sound in enumerate(chosen)))
    finally:
        probing.cancel()
        with suppress(asyncio.CancelledError):
            await probing
    streams = [
        {"recording": sound.name} | scores(items_of(log), sound.words, sound.uploaded, sound.truth)
        for sound, log in zip(chosen, logs, strict=True)
    ]
    return summary(streams) | {
        "recordings": ", ".join(dict.fromkeys(sound.name for sound in chosen)),
        "chunk_ms": way.chunk_ms,
        "streams": way.streams,
        "cpu_per_s": round(
            (cpu_s(process) - cpu_before_s) / sum(len(sound.pcm) / RATE + SILENCE_S for sound in chosen), 3
        ),
        "mib_per_stream": round((cost["peak_bytes"] - before) / way.streams / 2**20, 2),
        "health_p99_ms": round(float(np.percentile(cost["health_ms"], 99)), 1),
        "details": streams,
        "events": logs,
    }


COLUMNS = (
    "recording",
    "streams",
    "chunk (ms)",
    "turns (without a text)",
    "first words (s): median, 95 %",
    "all words (s)",
    "final (s)",
    "taken back (%)",
    "word errors (%): live, upload",
    "times (s): median, 95 %, over 0.1 s (%)",
    "CPU of all processes (s / s of audio)",
    "MiB / stream",
    "/health p99 (ms)",
)


def row(figures: Figures) -> list[object]:
    def spread(name: str) -> str:
        return ", ".join("–" if value is None else f"{value:.2f}" for value in figures[name])

    return [
        figures["recordings"],
        figures["streams"],
        figures["chunk_ms"],
        f"{figures['turns']} ({figures['without_text']})",
        spread("first_s"),
        spread("words_s"),
        spread("final_s"),
        figures["taken_back_percent"],
        f"{figures['wer_percent']}, {figures['upload_wer_percent']}",
        f"{spread('times_s')}, {figures['times_off_percent']}",
        figures["cpu_per_s"],
        figures["mib_per_stream"],
        figures["health_p99_ms"],
    ]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("recordings", nargs="+", type=Path)
    parser.add_argument("--chunks", default="20,100,500", help="lengths of chunks (ms)")
    parser.add_argument("--streams", type=int, default=1, help="that play at once")
    parser.add_argument("--model", type=Path, default=DEMO_PATH, help="of a new service; default: demo")
    parser.add_argument("--seconds", type=float, help="of each recording; default: all of it")
    parser.add_argument("--turns", default="server_vad", help="`null`: the client commits at the end")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", type=int, default=0, help="jobs that run meanwhile")
    parser.add_argument("--url", help="a running service on this machine; default: start one")
    parser.add_argument("--events", type=Path, help="folder for all events of all streams")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.chunks, arguments.seconds = "100", 10.0
    sounds = [load(path, arguments.seconds) for path in arguments.recordings]
    turns = None if arguments.turns == "null" else arguments.turns
    figures: Figures = {"machine": machine(), "ways": []}
    environment = ONE_WORKER | {"WHISPER_MODEL": str(arguments.model), "WHISPER_MAX_STREAMS": "1000"}
    with running_service(arguments.url, **environment) as client:
        sounds = [upload(client, sound) for sound in sounds]
        played = [[sound] for sound in sounds] if arguments.streams == 1 else [sounds]
        print(*markdown(COLUMNS, ()), sep="\n", flush=True)
        for chunk_ms in map(int, arguments.chunks.split(",")):
            way = Way(chunk_ms, arguments.streams, turns, arguments.seed)
            for group in played:
                with busy(client, sounds[0], arguments.files):
                    found = asyncio.run(measure(str(client.base_url), group, way, server_process(client)))
                logs = found.pop("events")
                if arguments.events:
                    arguments.events.mkdir(parents=True, exist_ok=True)
                    for number, log in enumerate(logs):
                        name = f"{found['details'][number]['recording']}-{chunk_ms}-{number}.json"
                        (arguments.events / name).write_text(json.dumps(log))
                figures["ways"].append(found)
                print(f"| {' | '.join(map(str, row(found)))} |", flush=True)
    if arguments.json:
        write_json(arguments.json, figures)


if __name__ == "__main__":
    main()
