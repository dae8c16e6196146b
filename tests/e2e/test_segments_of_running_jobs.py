"""The text of a job while it grows: polled and by events, it comes to the final transcript."""

import itertools
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.e2e.fixtures import write_wav
from tests.e2e.running import DATA, Server, wait_for
from tests.e2e.test_jobs import events
from tests.media_files import RATE, read_pcm

pytestmark = pytest.mark.timeout(120)

ONE_WORKER = {"WHISPER_GPUS": "0", "WHISPER_BATCH_SIZE": 1}  # so a job takes some seconds


class Reader:
    """A client that keeps the segments of a job up to date, by its events or by polling."""

    def __init__(self, server: Server, job_id: str) -> None:
        self.server = server
        self.job_id = job_id
        self.seen: list[tuple[int, str]] = []  # numbers and types of events
        self.spans: list[tuple[float, float]] = []
        self.segments: list[dict[str, Any]] = []
        self.states: list[list[dict[str, Any]]] = []  # all that were shown, in order
        self._tag = ""

    def follow(self) -> Iterator[str]:
        """The types of further events, which the segments take into account by then."""
        after = self.seen[-1][0] if self.seen else 0
        for number, kind, data in events(self.server, self.job_id, after):
            self.seen.append((number, kind))
            if kind == "job.segments":
                kept = [segment for segment in self.segments if segment["start"] < data["from"]]
                self.spans.append((data["from"], data["to"]))
                self._show(kept + data["segments"])
            yield kind

    def poll(self) -> bool:
        """Get the segments if they have changed. Returns whether all are there."""
        answer = self.server.client.get(
            f"/v1/jobs/{self.job_id}/segments", headers={"If-None-Match": self._tag}
        )
        if answer.status_code == 304:
            return False
        document = answer.raise_for_status().json()
        self._tag = answer.headers["etag"]
        self._show(document["segments"])
        assert document["revision"] == 0
        return bool(document["complete"])

    def _show(self, segments: list[dict[str, Any]]) -> None:
        self.segments = segments
        self.states.append(segments)


def final(server: Server, job_id: str) -> list[tuple[float, float, str]]:
    """The segments of a job's result."""
    verbose = json.loads(server.result(job_id, "verbose_json"))
    return [(segment["start"], segment["end"], segment["text"].strip()) for segment in verbose["segments"]]


def check(reader: Reader, expected: list[tuple[float, float, str]]) -> None:
    """All that the reader has shown is the beginning of the transcript, and at last all of it."""
    shown = [(segment["start"], segment["end"], segment["text"]) for segment in reader.segments]
    assert shown == expected != []
    ids = [segment["id"] for segment in reader.segments]
    assert len(set(ids)) == len(ids)
    for state in reader.states:
        assert state == reader.segments[: len(state)]
    for segment in reader.segments:
        times = [time for word in segment["words"] for time in (word["start"], word["end"])]
        assert segment["start"] <= times[0]
        assert times == sorted(times)
        assert times[-1] <= segment["end"]
        assert "".join(word["word"] for word in segment["words"]) == segment["text"].replace(" ", "")


@pytest.fixture(scope="module")
def two_languages(talk_pcm, tmp_path_factory) -> Path:
    """Two minutes of talk. One of the first clips is in another language, which is outvoted.

    It is decoded again, before what follows may be shown: so much follows that some comes later still.
    """
    spanish = read_pcm(DATA / "talk_es.flac")[: 6 * RATE]
    pause = np.zeros(4 * RATE, spanish.dtype)
    parts = [talk_pcm[: 8 * RATE], pause, spanish, pause, np.resize(talk_pcm, 104 * RATE)]
    return write_wav(tmp_path_factory.mktemp("talks"), np.concatenate(parts))


def is_outvoted(decoded: list[str]) -> bool:
    """Whether some clip was decoded in two languages."""
    languages: dict[str, set[str]] = {}
    for pcm, language, _ in (name.split() for name in decoded):
        languages.setdefault(pcm, set()).add(language)
    return any(len(of_clip) > 1 for of_clip in languages.values())


def test_polled_and_by_events_the_segments_come_to_the_transcript(commands, sabotage, two_languages):
    server = commands.ready(**ONE_WORKER, **sabotage.settings)
    job = server.submit(two_languages)["id"]
    by_events, polled = Reader(server, job), Reader(server, job)
    with ThreadPoolExecutor(1) as background:
        following = background.submit(list, by_events.follow())
        wait_for(polled.poll, 60)
        following.result()
    expected = final(server, job)
    check(by_events, expected)
    check(polled, expected)
    assert by_events.segments == polled.segments
    assert is_outvoted(sabotage.decoded())
    assert len({len(state) for state in by_events.states}) > 1, "the text grew"
    assert by_events.spans[0][0] == 0
    assert all(before[1] == after[0] for before, after in itertools.pairwise(by_events.spans))
    assert by_events.seen[-1][1] == "job.succeeded"
    late = Reader(server, job)
    assert list(late.follow()) == [kind for _, kind in by_events.seen]
    assert late.states == by_events.states
