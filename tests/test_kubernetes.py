"""The Kubernetes manifest and the compose file: valid by schema, and all that they name exists."""

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from tests.api.fake_service import FakeService
from tests.test_containers import COMPOSE, instructions

ROOT = Path(__file__).parents[1]
MANIFEST = list(yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text()))
RESTORE = yaml.safe_load((ROOT / "deploy" / "kubernetes-restore.yaml").read_text())
OWN_SERVICES = ("gpu", "cpu")
OLDEST = "1.29"  # that providers still maintain
THIRD_PARTY = {"HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE", "HF_HOME", "CUDA_CACHE_PATH"}


def only(kind: str) -> dict[str, Any]:
    [document] = [document for document in MANIFEST if document["kind"] == kind]
    return document


POD = only("Deployment")["spec"]["template"]["spec"]
[CONTAINER] = POD["containers"]


@pytest.mark.parametrize("version", [OLDEST, kubernetes_validate.latest_version()])
def test_the_manifest_is_valid(version: str) -> None:
    for document in [*MANIFEST, RESTORE]:
        kubernetes_validate.validate(document, version, strict=True)
    broken = json.loads(json.dumps(only("Service")))
    broken["spec"]["port"] = 8000
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, version, strict=True)


def test_the_compose_file_is_valid() -> None:
    schema = files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    jsonschema.validate(COMPOSE, json.loads(schema.read_text()))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(COMPOSE | {"services": {"gpu": {"imge": "x"}}}, json.loads(schema.read_text()))


def test_images_are_those_that_compose_builds() -> None:
    built = {name: COMPOSE["services"][name]["image"] for name in OWN_SERVICES}
    assert CONTAINER["image"] == built["gpu"] == "whisperfleet:gpu"
    assert f"image {built['cpu']}, WHISPER_DEVICE=cpu" in (ROOT / "deploy" / "kubernetes.yaml").read_text()


def test_one_port_everywhere() -> None:
    [exposed] = instructions("EXPOSE")
    [port] = CONTAINER["ports"]
    assert str(port["containerPort"]) == exposed
    [service_port] = only("Service")["spec"]["ports"]
    assert service_port["targetPort"] == port["name"]
    assert {COMPOSE["services"][name]["environment"]["WHISPER_PORT"] for name in OWN_SERVICES} == {exposed}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"), api_keys=("key",), _env_file=None)  # type: ignore[call-arg]
    app = create_app(settings, FakeService(settings))  # type: ignore[arg-type]
    with TestClient(app, base_url="http://10.1.2.3:8000") as connected:
        yield connected


@pytest.mark.parametrize("name", ["startupProbe", "livenessProbe", "readinessProbe"])
def test_probes_are_answered_without_a_key(client: TestClient, name: str) -> None:
    probe = CONTAINER[name]["httpGet"]
    assert probe["port"] == CONTAINER["ports"][0]["name"]
    assert client.get(probe["path"]).status_code == 200


def test_no_probe_restarts_a_pod_that_downloads_its_model() -> None:
    paths = {name: CONTAINER[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe")}
    assert set(paths.values()) == {"/health"}
    assert CONTAINER["readinessProbe"]["httpGet"]["path"] == "/ready"


def test_variables_are_settings_or_those_of_libraries() -> None:
    known = {f"WHISPER_{name.upper()}" for name in Settings.model_fields} | THIRD_PARTY
    given = {variable["name"]: variable.get("value") for variable in CONTAINER["env"]}
    assert set(given) <= known
    values = {
        name.removeprefix("WHISPER_").lower(): value
        for name, value in given.items()
        if name.startswith("WHISPER_") and value is not None
    }
    assert Settings(**values, _env_file=None).device == "cuda"
    for name in OWN_SERVICES:
        assert set(COMPOSE["services"][name].get("environment", {})) <= known


def test_a_service_of_any_name_sets_no_setting() -> None:
    assert POD["enableServiceLinks"] is False


def test_a_pod_ends_before_the_next_one_starts() -> None:
    deployment = only("Deployment")["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    grace = int(str(COMPOSE["x-service"]["stop_grace_period"]).removesuffix("s"))
    assert POD["terminationGracePeriodSeconds"] >= grace


def test_the_pod_gets_gpus_and_no_privileges() -> None:
    resources = CONTAINER["resources"]
    assert resources["requests"]["nvidia.com/gpu"] == resources["limits"]["nvidia.com/gpu"]
    user = POD["securityContext"]
    [image_user] = instructions("USER")
    assert image_user == f"{user['runAsUser']}:{user['runAsGroup']}"
    assert user["fsGroup"] == user["runAsGroup"]
    assert user["runAsNonRoot"] is True
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_all_volumes_of_the_image_are_mounted() -> None:
    mounted = {mount["mountPath"]: mount["name"] for mount in CONTAINER["volumeMounts"]}
    assert set(mounted) == {*json.loads(instructions("VOLUME")[0]), "/tmp"}
    volumes = {volume["name"]: volume for volume in POD["volumes"]}
    assert set(volumes) == set(mounted.values())
    assert "emptyDir" in volumes[mounted["/tmp"]], "the root is read-only"
    claims = {item["metadata"]["name"] for item in MANIFEST if item["kind"] == "PersistentVolumeClaim"}
    named = {
        volume["persistentVolumeClaim"]["claimName"]
        for volume in volumes.values()
        if "persistentVolumeClaim" in volume
    }
    assert claims == named


def test_labels_join_the_parts() -> None:
    deployment = only("Deployment")["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"] == only("Service")["spec"]["selector"] == labels


def test_secrets_are_not_in_the_manifest() -> None:
    assert not [document for document in MANIFEST if document["kind"] == "Secret"]
    secret = {
        variable["name"]: variable["valueFrom"]["secretKeyRef"]
        for variable in CONTAINER["env"]
        if "valueFrom" in variable
    }
    created = "kubectl create secret generic whisperfleet --from-literal=WHISPER_API_KEYS="
    assert created in (ROOT / "deploy" / "kubernetes.yaml").read_text()
    assert secret["WHISPER_API_KEYS"] == {"name": "whisperfleet", "key": "WHISPER_API_KEYS"}
    assert secret["HF_TOKEN"]["optional"] is True


def test_a_restoring_pod_has_the_data_and_gets_no_requests() -> None:
    pod = RESTORE["spec"]
    [container] = pod["containers"]
    assert container["image"] == CONTAINER["image"]
    assert container["securityContext"] == CONTAINER["securityContext"]
    assert pod["securityContext"] == POD["securityContext"]
    assert {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]} == {
        mount["name"]: mount["mountPath"]
        for mount in CONTAINER["volumeMounts"]
        if mount["name"] in ("data", "tmp")
    }
    assert all(volume in POD["volumes"] for volume in pod["volumes"])
    assert "labels" not in RESTORE["metadata"]
    assert container["command"] == ["sleep", "infinity"], "the service must not run"
