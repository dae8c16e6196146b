"""Many clients that stop reading: others go on, and memory and disk stay small."""

import sqlite3
from contextlib import ExitStack
from random import Random

import pytest

from app.jobs.serialization import pack_transcript, unpack_transcript
from app.transcript.timeline import Transcript
from tests.e2e.burden import MIB, burden
from tests.e2e.running import KEY, KEYED, wait_for
from tests.media_files import flac_of_silence
from tests.slow_readers import ask
from workers.messages import SAMPLE_RATE, Segment, Word

pytestmark = [pytest.mark.soak, pytest.mark.timeout(400)]

TIMEOUT_S = 15
# Nine requests at a time, more than one key or link may read.
SMALL = KEYED | {
    "WHISPER_SEND_TIMEOUT_S": TIMEOUT_S,
    "WHISPER_MAX_QUEUED_JOBS": 1,
    "WHISPER_MAX_UPLOADS": 200,
}
READERS = 12
LONG_S = 36_000
SEGMENTS = 20_000


@pytest.fixture
def long_job(commands, talk):
    """A server, and the id of its job, whose transcript is that of ten hours: about 18 MB as segments."""
    first = commands.ready(**SMALL)
    job = first.submit(talk.path)["id"]
    assert first.finished(job)["status"] == "succeeded"
    first.end()
    database = sqlite3.connect(first.data / "whisperfleet.db")
    with database:
        (content,) = database.execute("SELECT content FROM transcripts").fetchone()
        transcript = pack_transcript(long_transcript(unpack_transcript(content)))
        database.execute("UPDATE transcripts SET content = ?", [transcript])
        database.execute("UPDATE jobs SET duration = ?", [LONG_S])
    database.close()
    return commands.restart(first, **SMALL).wait_until_ready(), job


def long_transcript(short: Transcript) -> Transcript:
    random = Random(1)
    step = LONG_S * SAMPLE_RATE // SEGMENTS
    segments = []
    for number in range(SEGMENTS):
        times = [number * step + step * word // 10 for word in range(11)]
        words = tuple(
            Word(f" {random.choice(WORDS)}", times[i], times[i + 1], random.random()) for i in range(10)
        )
        text = "".join(word.text for word in words)
        segments.append(Segment(times[0], times[-1], text, (1,), 0.0, -0.2, 1.0, 0.0, words))
    return Transcript("transcribe", short.model, "en", LONG_S * SAMPLE_RATE, (), tuple(segments))


WORDS = [f"{Random(number).randbytes(3).hex()}" for number in range(5000)]


def readers(stack, server, targets):
    """Clients that ask, wait for the head of the answer, and stop reading."""
    connections = [stack.enter_context(ask(server.port, target, key=KEY)) for target in targets]
    for connection in connections:
        connection.settimeout(120)
        assert connection.recv(12) == b"HTTP/1.1 200"


def wait_until_ended(server):
    """Wait until the server has closed the connections of those that stopped reading."""
    wait_for(lambda: server.stderr.count("a client stopped reading") == READERS, 120)


@pytest.mark.parametrize("path", ["segments", "result?format=verbose_json", "result?format=json"])
def test_readers_of_a_long_transcript_take_little_memory(long_job, path):
    server, job = long_job
    target = f"/v1/jobs/{job}/{path}"
    size = len(server.client.get(target).content)
    print(f"{size / MIB:.1f} MiB each")
    with burden(server, memory_mib=150, disk_mib=8), ExitStack() as stack:
        readers(stack, server, [target] * READERS)
        wait_until_ended(server)
    assert len(server.client.get(target).content) == size


def test_readers_of_archives_keep_nobody_from_transcribing(long_job):
    server, job = long_job
    target = f"/v1/jobs/archive?format=verbose_json&ids={job}"
    with burden(server, memory_mib=150, disk_mib=8), ExitStack() as stack:
        readers(stack, server, [target] * READERS)
        assert server.post(flac_of_silence(0.01)).status_code == 200
        wait_until_ended(server)
    assert server.client.get(target).status_code == 200
