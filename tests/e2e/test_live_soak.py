"""Many live streams at once: workers crash, processes are killed, clients break off or mean no good."""

import asyncio
import random
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

import psutil
import pytest

from tests.e2e.live_clients import RealtimeClients, WyomingClients
from tests.e2e.running import SIMULATED, Server, free_port, wait_for
from tests.media_files import RATE, Pcm

PIECES = 12
KILL_EVERY_S = 7.0
MIB = 1 << 20
MEMORY_MIB = 16  # of the server, that the second half of the streams may need more than the first
SPARE_FILES = 12  # processes and connections to the database that come with work, and stay for a while
RESUME_S = 60.0  # a broken stream waits so long for its client, and `SOON_S` in the short form
SOON_S = 10.0
RELEASE_S = 65.0  # after the last audio, freed memory has been returned

SETTINGS = SIMULATED | {
    "WHISPER_CPU_WORKERS": 2,
    "WHISPER_MAX_STREAMS": 500,  # those that wait for their clients count
    "WHISPER_LOG_LEVEL": "warning",
}
CALM = "fixed_ms=10,clip_ms=10,token_ms=0,batch=16"
WILD = f"{CALM},crash=0.02,seed=3"


@dataclass
class Load:
    """Clients of one server."""

    server: Server
    port: int
    pieces: list[Pcm]
    expected: list[list[str]]  # the texts of the turns of each piece
    expected_by_wyoming: list[str]
    done: Counter[str] = field(default_factory=Counter)

    async def run(self, streams: int, seconds: float) -> None:
        """Keep so many streams open, each by a client of some kind."""
        until = asyncio.get_running_loop().time() + seconds
        async with asyncio.TaskGroup() as clients:
            for number in range(streams):
                clients.create_task(self._clients(random.Random(number), until))
            if seconds:
                clients.create_task(self._kill(until))

    async def _clients(self, chance: random.Random, until: float) -> None:
        """One client after the other. At least one, so that a short run has all kinds."""
        await asyncio.sleep(chance.uniform(0, 3))
        while True:
            await self._client(chance)
            if asyncio.get_running_loop().time() > until:
                return

    async def _client(self, chance: random.Random) -> None:
        number = chance.randrange(len(self.pieces))
        piece = self.pieces[number]
        realtime, wyoming = RealtimeClients(self.server.url), WyomingClients(self.port)
        kind = chance.choices(
            ("plain", "broken", "faulty", "gone", "wyoming", "no wyoming"), (4, 2, 2, 1, 2, 1)
        )[0]
        match kind:
            case "plain" | "broken" | "faulty":
                breaks, faults = (
                    chance.randint(1, 3) if kind == name else 0 for name in ("broken", "faulty")
                )
                expected = self.expected[number]
                stream = await realtime.play(piece, chance, len(expected), breaks=breaks, faults=faults)
                assert stream.in_order == expected, (kind, stream)
            case "gone":
                await realtime.leave(piece, chance)
            case "wyoming":
                assert await wyoming.play(piece) == self.expected_by_wyoming[number]
            case "no wyoming":
                await wyoming.leave(piece, chance)
        self.done[kind] += 1

    async def _kill(self, until: float) -> None:
        chance = random.Random(0)
        while asyncio.get_running_loop().time() < until:
            await asyncio.sleep(KILL_EVERY_S)
            children = await asyncio.to_thread(spawned_by, self.server.pid)
            if children:
                with suppress(psutil.NoSuchProcess):
                    chance.choice(children).kill()
                self.done["killed"] += 1


def spawned_by(pid: int) -> list[psutil.Process]:
    """The processes of a server that work: not the one that tracks what `multiprocessing` holds."""
    found = []
    for child in psutil.Process(pid).children():
        with suppress(psutil.NoSuchProcess):
            if any("spawn_main" in word for word in child.cmdline()):
                found.append(child)
    return found


async def texts_of(server: Server, port: int, pieces: list[Pcm]) -> tuple[list[list[str]], list[str]]:
    realtime, wyoming = RealtimeClients(server.url), WyomingClients(port)
    streams = await asyncio.gather(*(realtime.play(piece, random.Random(0)) for piece in pieces))
    return [stream.in_order for stream in streams], [*await asyncio.gather(*map(wyoming.play, pieces))]


def left(server: Server) -> list[str]:
    """What is left of streams."""
    found = [str(path) for path in server.left_files()]
    samples = server.client.get("/metrics").text.splitlines()
    for name in ("whisperfleet_live_streams", "whisperfleet_queued_clips"):
        [line] = [line for line in samples if line.startswith(f"{name} ")]
        if float(line.split()[1]):
            found.append(line)
    found += [f"worker {row['slot']}" for row in server.workers() if row["state"] != "idle"]
    return found


def until_nothing_is_left(server: Server) -> None:
    deadline = time.monotonic() + RESUME_S + 30
    while (found := left(server)) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert found == []


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("streams", "seconds"), [(16, 5.0), pytest.param(200, 600.0, marks=pytest.mark.soak)]
)
def test_nothing_is_lost_and_nothing_is_left(commands, sabotage, talk_pcm, streams, seconds):
    chance = random.Random(1)
    pieces = []
    for _ in range(PIECES):
        start, length = chance.randrange(len(talk_pcm) - 12 * RATE), round(chance.uniform(3, 8) * RATE)
        pieces.append(talk_pcm[start : start + length].astype("<i2"))
    port = free_port()
    calm = commands.ready(**SETTINGS, WHISPER_SIMULATED=CALM, WHISPER_WYOMING_PORT=port)
    expected = asyncio.run(texts_of(calm, port, pieces))
    calm.end()
    assert all(texts for texts, _ in zip(*expected, strict=True))

    is_long = seconds > RESUME_S
    if not is_long:
        sabotage.plan(resume_s=SOON_S)
    wild = SETTINGS | sabotage.settings | {"WHISPER_SIMULATED": WILD, "WHISPER_WYOMING_PORT": port}
    server = commands.ready(**wild)
    load = Load(server, port, pieces, *expected)
    process = psutil.Process(server.pid)
    files = process.num_fds()
    memory_mib = [process.memory_info().rss / MIB]
    # What the first half leaves stays: the batches of the last minutes, and memory between these.
    for part_s in [seconds / 2] * 2 if is_long else [seconds]:
        asyncio.run(load.run(streams, part_s))
        until_nothing_is_left(server)
        wait_for(lambda: process.num_fds() <= files + SPARE_FILES, RESUME_S + 30)
        if is_long:
            time.sleep(RELEASE_S)
        memory_mib.append(process.memory_info().rss / MIB)
    print(dict(load.done), "memory (MiB):", *map(round, memory_mib))
    assert load.done["killed"]
    if is_long:
        assert memory_mib[-1] - memory_mib[-2] <= MEMORY_MIB
    assert "Traceback" not in server.stderr
