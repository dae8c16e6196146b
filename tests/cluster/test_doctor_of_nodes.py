"""What `whisperfleet doctor --cluster` says of a node's report."""

from dataclasses import replace

import pytest

from app.commands.doctor.cluster import check_connection, check_report
from app.commands.doctor.finding import Finding, Severity
from app.engines.cluster import node_checks
from app.pool.cluster.bridge import Bridge
from app.pool.cluster.ray_messages import NodeReport, RayNode
from app.settings import Settings
from workers.messages import LoadOptions

NODE = RayNode("ab12", "gpu-1", "10.0.0.1", gpus=2, cpus=16)
REPORT = NodeReport(node_checks.versions(), 1000.0, "570.86", ("NVIDIA L4", "NVIDIA L4"))


def checked(report: NodeReport, node: RayNode = NODE) -> dict[str, Finding]:
    """The findings by what was checked. This machine's clock showed 999 s before and 1003 s after it."""
    options = LoadOptions("demo", "", "cuda", "auto", 1)
    findings = check_report("node gpu-1", node, report, 999.0, 1003.0, options)
    return {finding.title.removeprefix("node gpu-1: "): finding for finding in findings}


def test_a_sound_node() -> None:
    findings = checked(REPORT)
    assert list(findings) == ["versions", "NVIDIA driver", "clock"]
    assert {finding.severity for finding in findings.values()} == {Severity.OK}
    assert findings["NVIDIA driver"].found == "570.86, NVIDIA L4, NVIDIA L4"


def test_other_versions() -> None:
    finding = checked(replace(REPORT, versions={**REPORT.versions, "ray": "2.9.0"}))["versions"]
    assert finding.severity is Severity.FAIL
    assert "ray 2.9.0 (here " in finding.found


@pytest.mark.parametrize(
    ("report", "gpus", "severity", "found"),
    [
        (replace(REPORT, driver=None, gpus=()), 0, Severity.OK, "none; the node has no GPUs for Ray"),
        (replace(REPORT, driver=None, gpus=()), 2, Severity.FAIL, "none, and Ray has 2 GPUs"),
        (replace(REPORT, driver="470.1"), 2, Severity.FAIL, "470.1, NVIDIA L4, NVIDIA L4"),
        (replace(REPORT, driver="odd"), 2, Severity.OK, "odd, NVIDIA L4, NVIDIA L4"),
    ],
)
def test_drivers(report: NodeReport, gpus: int, severity: Severity, found: str) -> None:
    finding = checked(report, replace(NODE, gpus=gpus))["NVIDIA driver"]
    assert (finding.severity, finding.found) == (severity, found)


@pytest.mark.parametrize(("clock", "off"), [(997.5, None), (996.0, "3.0 s"), (1005.5, "2.5 s")])
def test_a_clock_is_off_by_what_the_time_of_the_report_cannot_explain(clock: float, off: str | None) -> None:
    finding = checked(replace(REPORT, clock=clock))["clock"]
    if off is None:
        assert finding.severity is Severity.OK
    else:
        assert (finding.severity, finding.found) == (Severity.WARN, f"{off} from this machine's")


def bridge(address: str = "10.0.0.1:6379") -> Bridge:
    connected = Bridge(address)
    connected.nodes, connected.fault = (NODE,), None
    return connected


def test_the_connection() -> None:
    settings = Settings(_env_file=None, ray_address="10.0.0.1:6379")
    assert check_connection(settings, bridge()) == Finding("cluster", "10.0.0.1:6379, 1 node: gpu-1")
    insecure = check_connection(settings.model_copy(update={"ray_insecure": True}), bridge())
    assert (insecure.severity, "any program" in insecure.remedy) == (Severity.WARN, True)
    alone = check_connection(Settings(_env_file=None), bridge(""))
    assert (alone.severity, "WHISPER_RAY_ADDRESS" in alone.remedy) == (Severity.WARN, True)
    refused = bridge()
    refused.nodes, refused.fault = (), "the cluster refuses the token: set RAY_AUTH_TOKEN"
    finding = check_connection(settings, refused)
    assert (finding.severity, finding.found) == (Severity.FAIL, refused.fault)
