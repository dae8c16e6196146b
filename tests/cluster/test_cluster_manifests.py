"""The manifests for KubeRay and KEDA: valid by schema, and all that they name exists."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from app.settings import Settings
from tests.cli_table import cli_table
from tests.cluster import ray_ports
from tests.cluster.commands_of_containers import run
from tests.monitoring import selectors
from tests.test_containers import COMPOSE, instructions
from tests.test_kubernetes import CONTAINER as SINGLE_CONTAINER
from tests.test_kubernetes import OLDEST, THIRD_PARTY
from tests.test_kubernetes import POD as SINGLE_POD
from tests.test_monitoring import metric_of, promtool

ROOT = Path(__file__).parents[2]
FILES = {name: (ROOT / "deploy" / name).read_text() for name in ("kuberay.yaml", "keda.yaml")}
DOCUMENTS: list[Any] = [document for text in FILES.values() for document in yaml.safe_load_all(text)]
# KubeRay's kind is checked by a schema written for this test, KEDA's by its own definition.
SCHEMAS = {
    kind: json.loads((ROOT / "tests" / "schemas" / f"{name}.json").read_text())
    for kind, name in (("RayCluster", "kuberay-raycluster"), ("ScaledObject", "keda-scaledobject"))
}


def only(kind: str, name: str = "whisperfleet") -> Any:
    [document] = [item for item in DOCUMENTS if (item["kind"], item["metadata"]["name"]) == (kind, name)]
    return document


CLUSTER = only("RayCluster")["spec"]
[GROUP] = CLUSTER["workerGroupSpecs"]
SCALED = only("ScaledObject", "whisperfleet-workers")["spec"]
TEMPLATES: dict[str, Any] = {
    "head": CLUSTER["headGroupSpec"]["template"],
    "worker": GROUP["template"],
    "front": only("Deployment")["spec"]["template"],
    "scaled": only("Deployment", "whisperfleet-workers")["spec"]["template"],
}
WORKERS = ("worker", "scaled")


def container(pod: str) -> Any:
    [found] = TEMPLATES[pod]["spec"]["containers"]
    return found


def variables(pod: str) -> dict[str, Any]:
    """The variables of a pod; those of a secret or a field are that reference."""
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in container(pod)["env"]}


def ray_options(pod: str) -> dict[str, str]:
    """The options of `ray start`. KubeRay makes them of a mapping."""
    if pod == "head":
        return dict(CLUSTER["headGroupSpec"]["rayStartParams"])
    if pod == "worker":
        return dict(GROUP["rayStartParams"])
    return ray_ports.options(container(pod)["command"][2])


@pytest.mark.parametrize("version", [OLDEST, kubernetes_validate.latest_version()])
def test_the_manifests_are_valid(version: str) -> None:
    for document in DOCUMENTS:
        if document["kind"] in SCHEMAS:
            jsonschema.validate(document, SCHEMAS[document["kind"]])
        else:
            kubernetes_validate.validate(document, version, strict=True)
    for template in TEMPLATES.values():
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"} | template["metadata"]}
        kubernetes_validate.validate(pod | {"spec": template["spec"]}, version, strict=True)


def test_all_nodes_have_the_image_of_compose_and_its_ray() -> None:
    assert {container(pod)["image"] for pod in TEMPLATES} == {COMPOSE["services"]["front"]["image"]}
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    assert f"ray=={CLUSTER['rayVersion']}" in pins
    assert FILES["kuberay.yaml"].count("whisperfleet:cluster") == 2, "its comment says twice"


@pytest.mark.parametrize("pod", TEMPLATES)
def test_ray_asks_for_the_token_of_the_secret(pod: str) -> None:
    given = variables(pod)
    assert given["RAY_AUTH_MODE"] == "token"
    assert given["RAY_AUTH_TOKEN"] == {"secretKeyRef": {"name": "whisperfleet-ray", "key": "auth_token"}}
    assert given["RAY_USAGE_STATS_ENABLED"] == "0"
    assert (
        given.get("OTEL_SDK_DISABLED") == "true"
        or "OTEL_SDK_DISABLED=true ray start" in container(pod)["command"][2]
    )
    assert (
        "kubectl create secret generic whisperfleet-ray --from-literal=auth_token=" in FILES["kuberay.yaml"]
    )
    assert not [document for document in DOCUMENTS if document["kind"] == "Secret"]


@pytest.mark.parametrize("pod", TEMPLATES)
def test_ports_are_fixed_and_probed(pod: str) -> None:
    options = ray_options(pod)
    ray_ports.check(options, head=pod == "head")
    if pod == "front":
        return
    [port] = container(pod)["ports"]
    expected = ray_ports.HEAD["port"] if pod == "head" else options["node-manager-port"]
    assert str(port["containerPort"]) == expected
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container(pod)[probe]["tcpSocket"]["port"] == port["name"], "KubeRay's own probes need wget"


def test_all_join_the_head_of_the_cluster() -> None:
    address = f"{only('RayCluster')['metadata']['name']}-head-svc:{ray_ports.HEAD['port']}"
    assert variables("front")["WHISPER_RAY_ADDRESS"] == address
    assert ray_options("front")["address"] == "$WHISPER_RAY_ADDRESS"
    assert ray_options("scaled")["address"] == address


def test_the_ports_of_ray_are_closed_to_all_but_nodes() -> None:
    policy = only("NetworkPolicy", "whisperfleet-ray")["spec"]
    nodes = policy["podSelector"]
    assert policy["policyTypes"] == ["Ingress"]
    assert policy["ingress"] == [{"from": [{"podSelector": nodes}]}]
    for template in TEMPLATES.values():
        assert nodes["matchLabels"].items() <= template["metadata"]["labels"].items()
    http = only("NetworkPolicy", "whisperfleet-http")["spec"]
    assert http["podSelector"] == only("Deployment")["spec"]["selector"]
    [rule] = http["ingress"]
    assert [port["port"] for port in rule["ports"]] == [container("front")["ports"][0]["name"]]
    [published] = only("Service")["spec"]["ports"]
    assert published["targetPort"] == container("front")["ports"][0]["name"]
    assert CLUSTER["headGroupSpec"]["serviceType"] == "ClusterIP"


def test_the_front_end_starts_the_service_beside_a_node_that_offers_nothing(tmp_path: Path) -> None:
    ran = run(container("front")["command"], tmp_path, WHISPER_RAY_ADDRESS="head:1", POD_NAME="front-0")
    assert ran.returncode == 0
    assert "whisperfleet serve" in ran.calls
    starts = [call for call in ran.calls if call.startswith("ray start")]
    assert len(starts) >= 2, "it is started again"
    options = ray_ports.options(starts[0])
    assert (options["address"], options["node-name"]) == ("head:1", "front-0")
    assert (options["num-cpus"], options["num-gpus"]) == ("0", "0")


def test_a_scaled_node_is_the_first_process_of_its_container(tmp_path: Path) -> None:
    """So it gets SIGTERM. KubeRay's own command does the same."""
    command = container("scaled")["command"]
    ran = run(command, tmp_path / "with", POD_NAME="gpu-0")
    assert ran.calls[0] == "nvidia-smi -L"
    assert ray_ports.options(ran.calls[1])["node-name"] == "gpu-0"
    assert "exec ray start" in command[2]
    without = run(command, tmp_path / "without", POD_NAME="gpu-0", DRIVER="9")
    assert (without.returncode, without.calls) == (9, ["nvidia-smi -L"])


@pytest.mark.parametrize("pod", WORKERS)
def test_a_worker_drains_before_it_ends(pod: str, tmp_path: Path) -> None:
    spec = TEMPLATES[pod]["spec"]
    command = container(pod)["lifecycle"]["preStop"]["exec"]["command"]
    first_key = re.search(r"WHISPER_API_KEY=\$\((cut .*?)\) whisperfleet", command[2])
    assert first_key is not None
    for keys in ("KEY", "KEY,other", "ops:KEY:operator,other"):
        (tmp_path / "keys").write_text(keys)
        script = first_key[1].replace("/run/whisperfleet/WHISPER_API_KEYS", str(tmp_path / "keys"))
        assert subprocess.run(["sh", "-c", script], capture_output=True, check=True).stdout == b"KEY\n"
    ran = run(command, tmp_path, POD_NAME="gpu-0")
    [call] = ran.calls
    program, drain, name, *options = call.split()
    assert (program, drain, name) == ("whisperfleet", "drain", "gpu-0")
    given = dict(zip(options[::2], options[1::2], strict=True))
    [row] = [line for line in cli_table() if line.startswith("| `whisperfleet drain ")]
    assert set(given) <= set(re.findall(r"`(--[\w-]+)`", row))
    assert given["--server"] == f"http://{only('Service')['metadata']['name']}:8000"
    ray_s = float(variables(pod)["RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"])
    assert float(given["--timeout"]) + ray_s < spec["terminationGracePeriodSeconds"]
    assert ray_options(pod)["node-name"] == "$POD_NAME"
    assert variables(pod)["POD_NAME"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    [keys] = [volume["secret"] for volume in spec["volumes"] if volume["name"] == "keys"]
    assert keys["secretName"] == variables("front")["WHISPER_API_KEYS"]["secretKeyRef"]["name"]


def test_variables_are_settings_or_those_of_libraries() -> None:
    known = {f"WHISPER_{name.upper()}" for name in Settings.model_fields} | THIRD_PARTY | {"POD_NAME"}
    for pod in TEMPLATES:
        given = {name: value for name, value in variables(pod).items() if not re.match("RAY_|OTEL_", name)}
        assert set(given) <= known
        assert pod == "front" or not [name for name in given if name.startswith("WHISPER_")]
    plain = {name: value for name, value in variables("front").items() if isinstance(value, str)}
    values = {name[8:].lower(): value for name, value in plain.items() if name.startswith("WHISPER_")}
    settings = Settings(**values, _env_file=None)  # type: ignore[arg-type]
    assert (settings.engine, settings.device, settings.ray_insecure) == ("ray", "cuda", False)


@pytest.mark.parametrize("pod", TEMPLATES)
def test_pods_have_no_privileges_and_a_read_only_root(pod: str) -> None:
    spec = TEMPLATES[pod]["spec"]
    assert spec["securityContext"] == SINGLE_POD["securityContext"]
    assert container(pod)["securityContext"] == SINGLE_CONTAINER["securityContext"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False


@pytest.mark.parametrize("pod", TEMPLATES)
def test_all_that_is_mounted_is_there(pod: str) -> None:
    spec = TEMPLATES[pod]["spec"]
    mounts = {mount["mountPath"]: mount["name"] for mount in container(pod)["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert set(mounts.values()) == set(volumes)
    assert {"/tmp", "/dev/shm", "/data"} <= set(mounts)
    if pod != "head":
        assert set(json.loads(instructions("VOLUME")[0])) <= set(mounts)
    shm = volumes[mounts["/dev/shm"]]["emptyDir"]
    assert shm["medium"] == "Memory"
    store = int(ray_options(pod)["object-store-memory"])
    assert int(shm["sizeLimit"].removesuffix("Mi")) * 2**20 > 1.1 * store
    claims = {item["metadata"]["name"] for item in DOCUMENTS if item["kind"] == "PersistentVolumeClaim"}
    named = [
        volume["persistentVolumeClaim"] for volume in spec["volumes"] if "persistentVolumeClaim" in volume
    ]
    assert {claim["claimName"] for claim in named} <= claims
    has_data = any(claim["claimName"] == "whisperfleet-data" for claim in named)
    assert has_data == (pod == "front"), "nodes have no recordings"


def test_labels_join_the_parts() -> None:
    for name in ("whisperfleet", "whisperfleet-workers"):
        deployment = only("Deployment", name)["spec"]
        labels = deployment["selector"]["matchLabels"]
        assert labels.items() <= deployment["template"]["metadata"]["labels"].items()
        assert all(
            template["metadata"]["labels"].get("app.kubernetes.io/name") != name
            for template in TEMPLATES.values()
            if template is not deployment["template"]
        )
    assert only("Service")["spec"]["selector"] == only("Deployment")["spec"]["selector"]["matchLabels"]
    budget = only("PodDisruptionBudget", "whisperfleet-workers")["spec"]
    assert budget["selector"] == only("Deployment", "whisperfleet-workers")["spec"]["selector"]


def test_keda_scales_the_deployment() -> None:
    target = only("Deployment", SCALED["scaleTargetRef"]["name"])["spec"]
    assert "replicas" not in target, "KEDA sets them"
    # Without any worker the service starts no job, and no clip would wait.
    assert GROUP["replicas"] == GROUP["minReplicas"] == 1
    assert CLUSTER["enableInTreeAutoscaling"] is False


def trigger() -> dict[str, str]:
    [found] = SCALED["triggers"]
    assert (found["type"], found["metricType"]) == ("prometheus", "AverageValue")
    return dict(found["metadata"])


def test_the_query_names_metrics_that_there_are() -> None:
    found = list(selectors(trigger()["query"]))
    assert "whisperfleet_queued_clips" in [name for name, _ in found]
    for name, matchers in found:
        metric = metric_of(name)
        for matcher in matchers:
            assert matcher.value in metric.labels[matcher.label]


@pytest.mark.parametrize(
    ("clips", "jobs", "busy", "nodes"),
    [
        (0, 0, 0, 0),
        (40, 0, 1, 0.4),  # too few to begin with
        (250, 0, 1, 2.5),
        (0, 300, 1, 3),  # jobs that wait have no clips yet
        (0, 0, 4, 3),  # the last batches: three of the four are its own
        (100, 0, 4, 4),
    ],
)
def test_how_many_nodes_the_query_wants(
    clips: int, jobs: int, busy: int, nodes: float, tmp_path: Path
) -> None:
    series = {"whisperfleet_queued_clips": clips, 'whisperfleet_jobs{status="queued"}': jobs}
    for slot in range(8):
        series[f'whisperfleet_worker_state{{slot="{slot}",state="busy"}}'] = int(slot < busy)
    test = tmp_path / "test.yml"
    case = {"expr": trigger()["query"], "eval_time": "1m", "exp_samples": [{"labels": "{}", "value": nodes}]}
    inputs = [{"series": name, "values": f"{value} {value}"} for name, value in series.items()]
    test.write_text(
        yaml.safe_dump({"tests": [{"interval": "1m", "input_series": inputs, "promql_expr_test": [case]}]})
    )
    assert "SUCCESS" in promtool("test", "rules", test)
    wants_any = nodes > float(trigger()["activationThreshold"])
    assert wants_any == (nodes >= 1), "the first node comes for a good part of its work"
