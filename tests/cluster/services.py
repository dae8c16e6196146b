"""The service on a cluster, as a process of its own, and what its workers have done."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from tests.cluster.clusters import RayCluster
from tests.e2e.running import Server, wait_for

BACK_S = 60.0  # for what a cluster has lost to be there again


def ray_settings(cluster: RayCluster, **others: Any) -> dict[str, Any]:
    """Settings of a service whose workers run on the cluster."""
    return {
        "WHISPER_ENGINE": "ray",
        "WHISPER_RAY_ADDRESS": cluster.address,
        "WHISPER_GPUS": None,
        **others,
    }


def blocks(server: Server) -> list[dict[str, Any]]:
    """The batches that the workers have ended, in order."""
    with server.client.stream("GET", "/v1/workers/events") as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                return list(json.loads(line.removeprefix("data: "))["blocks"])
    return []


def nodes_of_workers(server: Server) -> dict[str, int]:
    """How many workers each node has."""
    names = [row["node_name"] for row in server.workers()]
    return {name: names.count(name) for name in names}


def wait_until_whole(service: Server) -> None:
    """Wait until the workers of both nodes are ready."""
    wait_for(lambda: nodes_of_workers(service) == {"node0": 1, "node1": 1}, BACK_S)
    wait_for(lambda: all(row["state"] == "idle" for row in service.workers()), BACK_S)


def has_ray(process: psutil.Process) -> bool:
    """Whether a process has imported Ray."""
    return any("/_raylet" in mapped.path for mapped in process.memory_maps())


def bridge(server: Server) -> psutil.Process:
    """The process of the service that is Ray's driver."""
    [found] = filter(has_ray, psutil.Process(server.pid).children())
    return found


class Disturbed:
    """A job in mid-file, for a test that kills something meanwhile."""

    def __init__(self, server: Server, recording: Path, expected: str) -> None:
        """Returns when all workers are busy with the job. `expected`: its subtitles."""
        self.server = server
        self._expected = expected
        self._restarts = restarts(server)
        self.job = server.submit(recording)["id"]
        wait_for(lambda: all(row["state"] == "busy" for row in server.workers()))

    @property
    def clips_done(self) -> int:
        return int(self.server.job(self.job)["progress"]["clips_done"])

    def check(self) -> None:
        """The job succeeds with its subtitles, each clip was answered once, and none counts a crash."""
        job = self.server.finished(self.job)
        assert job["status"] == "succeeded", job
        assert self.server.result(self.job) == self._expected
        clips = Counter[str]()
        for block in blocks(self.server):
            clips[block["outcome"]] += sum(part["clips"] for part in block["jobs"] if part["job"] == self.job)
        assert clips["ok"] == job["progress"]["clips_total"]
        assert clips["failed"] == 0
        assert (restarts(self.server) - self._restarts).keys() <= {"lost"}


def restarts(server: Server) -> Counter[str]:
    """Why the workers that there are now have been replaced, and how often."""
    reasons = Counter[str]()
    for line in server.client.get("/metrics").raise_for_status().text.splitlines():
        found = re.match(r'whisperfleet_worker_restarts_total\{.*reason="(\w+)".*\} (.+)', line)
        if found:
            reasons[found[1]] += int(float(found[2]))
    return +reasons
