"""Jobs while processes are killed at random. No job may be lost, and no stored clip transcribed again."""

import random
import socket
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import httpx
import numpy as np
import psutil

from app.transcript.packed import unpack_result
from tests.e2e.fixtures import Commands
from tests.e2e.running import Server, wait_for
from tests.e2e.sabotage import Sabotage
from tests.e2e.saboteur.sitecustomize import window_name
from tests.media_files import RATE, Pcm, wav_header

WORKERS = "0,1,2"
END_S = 1200.0
BYTES_PER_SAMPLE = 2

T = TypeVar("T")


@dataclass
class Report:
    """What happened during a run."""

    kills: Counter[str] = field(default_factory=Counter)  # by what was killed
    stored: int = 0  # clips that were in the database when a server was killed
    transcribed_again: list[str] = field(default_factory=list)  # such clips that a worker transcribed later
    windows: int = 0  # that workers decoded
    seconds: float = 0.0


class Chaos:
    """A service whose processes are killed. Starts a killed server again."""

    def __init__(
        self,
        commands: Commands,
        folder: Path,
        sabotage: Sabotage,
        seed: int,
        pause_s: tuple[float, float],
    ) -> None:
        self._commands = commands
        self._folder = folder
        self._sabotage = sabotage
        self._settings = {"WHISPER_GPUS": WORKERS, **sabotage.settings}
        self._random = random.Random(seed)
        self._pause_s = pause_s  # between two kills: least and most
        self._known: dict[
            str, int
        ] = {}  # first windows of stored clips, and how often they had been decoded by then
        self._patience_s = END_S
        self.report = Report()
        self.server = self._start()

    def run(self, recordings: dict[str, Path], kills: Iterable[str]) -> dict[str, str]:
        """Submit all recordings, and kill processes meanwhile. Returns the subtitles, by name."""
        began = time.monotonic()
        with ThreadPoolExecutor(8) as clients:
            submitted = {
                name: clients.submit(self._retry, self._submit, name, path)
                for name, path in recordings.items()
            }
            try:
                for kind in kills:
                    time.sleep(self._random.uniform(*self._pause_s))
                    self._kill(kind)
            except BaseException:
                self._patience_s = 0  # the server will not come back: the clients give up at once
                raise
            jobs = {name: future.result() for name, future in submitted.items()}
            results = {name: self._retry(self._result, job) for name, job in jobs.items()}
        counts = Counter(self._sabotage.decoded())
        self.report.windows = counts.total()
        self.report.transcribed_again = [name for name, times in self._known.items() if counts[name] > times]
        self.report.seconds = time.monotonic() - began
        for job in jobs.values():
            self.server.client.delete(f"/v1/jobs/{job}").raise_for_status()
        return results

    def left(self) -> list[str]:
        """Stop the service. Returns what it left behind: processes, files, rows, its port."""
        processes = self.server.end()
        files = [str(path) for path in self.server.left_files()]
        with sqlite3.connect(self.server.data / "whisperfleet.db") as database:
            tables = ("jobs", "clips", "transcripts", "events", "deliveries")
            counts = {
                table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables
            }
        rows = [f"{count} {table}" for table, count in counts.items() if count]
        try:
            socket.create_server(("127.0.0.1", self.server.port)).close()
        except OSError as error:
            return [*processes, *files, *rows, str(error)]
        return [*processes, *files, *rows]

    def _start(self) -> Server:
        return self._commands.serve(folder=self._folder / "chaos", **self._settings).wait_until_up()

    def _submit(self, name: str, path: Path) -> str:
        return str(self.server.submit(path, headers={"Idempotency-Key": name})["id"])

    def _result(self, job_id: str) -> str:
        job = self.server.finished(job_id, END_S)
        assert job["status"] == "succeeded", job
        return self.server.result(job_id)

    def _retry(self, request: Callable[..., T], *arguments: object) -> T:
        """Send a request until a server answers, as a patient client would."""
        began = time.monotonic()
        while True:
            try:
                return request(*arguments)
            except (httpx.TransportError, httpx.HTTPStatusError, RuntimeError):  # closed, gone or stopping
                assert time.monotonic() < began + self._patience_s
                time.sleep(0.2)

    def _kill(self, kind: str) -> None:
        if kind == "server":
            self._kill_server()
        else:
            wait_for(lambda: self._kill_one(kind), 120, 0.1)
        self.report.kills[kind] += 1

    def _kill_one(self, kind: str) -> bool:
        """Kill something else than the server. Returns False if there is none now."""
        pids = [row["pid"] for row in self.server.workers() if row["pid"]]
        if kind == "media":
            pids = [child.pid for child in self.server.media_workers()]
        if not pids:
            return False
        try:
            psutil.Process(self._random.choice(pids)).kill()
        except psutil.NoSuchProcess:
            return False
        return True

    def _kill_server(self) -> None:
        killed = self.server
        killed.die()
        counts = Counter(self._sabotage.decoded())
        stored = self._stored(killed.data)
        self.report.stored += len(stored)
        self._known |= {name: counts[name] for name in stored}
        self.server = self._start()

    def _stored(self, data: Path) -> set[str]:
        """The names of the first windows of the clips whose results are in the database."""
        names = set()
        with sqlite3.connect(data / "whisperfleet.db") as database:
            rows = database.execute(
                'SELECT id, start, "end", result FROM clips '
                "JOIN jobs ON jobs.number = clips.job_number WHERE result IS NOT NULL"
            )
            for job_id, start, end, result in rows.fetchall():
                with (data / "pcm" / job_id).open("rb") as file:
                    file.seek(start * BYTES_PER_SAMPLE)
                    pcm = file.read((end - start) * BYTES_PER_SAMPLE)
                names.add(window_name(pcm, unpack_result(result).language))
        return names


def mixed_recordings(talk: Pcm, folder: Path, lengths_s: Iterable[float]) -> dict[str, Path]:
    """Recordings of these lengths. No two of them have a clip in common."""
    recordings = {}
    for number, length_s in enumerate(lengths_s):
        begin = number * 7 * RATE % len(talk)
        pcm = np.resize(np.roll(talk, -begin), round(length_s * RATE))
        quieter = np.round(pcm * (1 - 0.005 * (number + 1))).astype("<i2")
        path = folder / f"recording{number}.wav"
        path.write_bytes(wav_header(quieter.nbytes) + quieter.tobytes())
        recordings[path.stem] = path
    return recordings
