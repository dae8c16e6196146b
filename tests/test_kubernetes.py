"""The Kubernetes manifests and the compose file: valid by schema, and all that they name exists."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from starlette.testclient import TestClient

from app.commands.supervisor import STOP_S
from app.database.connection import Database
from app.main import create_app
from app.server.listening import DRAIN_S
from app.settings import Settings
from tests.api.fake_service import FakeService
from tests.monitoring import GROUP
from tests.test_containers import COMPOSE, instructions

ROOT = Path(__file__).parents[1]
MANIFEST, [RESTORE], [BACKUP_CLAIM, BACKUP], [MONITOR, RULES], REPLICAS = (
    list(yaml.safe_load_all((ROOT / "deploy" / f"{name}.yaml").read_text()))
    for name in (
        *("kubernetes", "kubernetes-restore", "kubernetes-backup", "kubernetes-monitoring"),
        "kubernetes-replicas",
    )
)
WATCH = yaml.safe_load((ROOT / "deploy" / "compose-watch.yaml").read_text())
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
    for document in [*MANIFEST, *REPLICAS, RESTORE, BACKUP_CLAIM, BACKUP]:
        kubernetes_validate.validate(document, version, strict=True)
    broken = json.loads(json.dumps(only("Service")))
    broken["spec"]["port"] = 8000
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, version, strict=True)


def test_the_compose_file_is_valid() -> None:
    schema = files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    jsonschema.validate(COMPOSE, json.loads(schema.read_text()))
    jsonschema.validate(WATCH, json.loads(schema.read_text()))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(COMPOSE | {"services": {"gpu": {"imge": "x"}}}, json.loads(schema.read_text()))


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


def test_replicas_have_what_one_pod_has_and_names_of_their_own() -> None:
    [stateful] = [document for document in REPLICAS if document["kind"] == "StatefulSet"]
    pod = stateful["spec"]["template"]["spec"]
    [container] = pod["containers"]
    variables = {variable["name"]: variable for variable in container["env"]}
    assert variables.keys() - {variable["name"] for variable in CONTAINER["env"]} == {
        "WHISPER_FRONT_END",
        "WHISPER_DATABASE_URL",
    }
    assert {f"WHISPER_{name.upper()}" for name in Settings.model_fields} >= {"WHISPER_FRONT_END"}
    for name in ("image", "resources", "startupProbe", "livenessProbe", "readinessProbe", "securityContext"):
        assert container[name] == CONTAINER[name], name
    assert pod["securityContext"] == POD["securityContext"]
    assert {volume["name"] for volume in pod["volumes"]} == {
        mount["name"] for mount in container["volumeMounts"]
    }
    assert pod["terminationGracePeriodSeconds"] > DRAIN_S + STOP_S
    [budget] = [document for document in REPLICAS if document["kind"] == "PodDisruptionBudget"]
    assert budget["spec"]["selector"] == stateful["spec"]["selector"]
    assert budget["spec"]["minAvailable"] < stateful["spec"]["replicas"]


def test_the_services_of_the_pair_differ_in_name_and_gpus_alone() -> None:
    one, other = COMPOSE["services"]["one"], COMPOSE["services"]["other"]
    assert {
        name for name in one["environment"] if one["environment"][name] != other["environment"][name]
    } == {
        "WHISPER_FRONT_END",
        "WHISPER_GPUS",
    }
    assert one["image"] == COMPOSE["services"]["gpu"]["image"]
    assert int(one["stop_grace_period"].removesuffix("s")) > DRAIN_S + STOP_S
    configuration = (ROOT / "deploy" / "nginx-pair.conf").read_text()
    assert all(f"server {name}:8000 " in configuration for name in ("one", "other"))
    [port] = COMPOSE["services"]["proxy"]["ports"]
    assert f"listen {port.rpartition(':')[2]};" in configuration


BACKUP_TEMPLATE = BACKUP["spec"]["jobTemplate"]["spec"]["template"]
PODS = {"service": POD, "restore": RESTORE["spec"], "backup": BACKUP_TEMPLATE["spec"]}


@pytest.mark.parametrize("pod", PODS.values(), ids=PODS)
def test_all_that_a_pod_names_is_there_and_it_has_no_privileges(pod: dict[str, Any]) -> None:
    [container] = pod["containers"]
    assert container["image"] == COMPOSE["services"]["gpu"]["image"]
    assert pod["securityContext"] == POD["securityContext"]
    assert container["securityContext"] == CONTAINER["securityContext"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes.keys()
    claims = {
        volume["persistentVolumeClaim"]["claimName"]
        for volume in volumes.values()
        if "persistentVolumeClaim" in volume
    }
    made = [*MANIFEST, BACKUP_CLAIM]
    assert claims <= {item["metadata"]["name"] for item in made if item["kind"] == "PersistentVolumeClaim"}


def test_the_service_and_a_backup_find_the_pod_and_no_other() -> None:
    deployment, service = only("Deployment")["spec"], only("Service")["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"] == service["selector"] == labels
    [term] = PODS["backup"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"] == deployment["selector"]
    assert "labels" not in RESTORE["metadata"]
    assert "metadata" not in BACKUP_TEMPLATE
    [port], [published] = CONTAINER["ports"], service["ports"]
    assert (published["targetPort"], str(port["containerPort"])) == (port["name"], *instructions("EXPOSE"))
    assert MONITOR["spec"]["endpoints"][0]["port"] == published["name"]


class Backups:
    """Runs the command of the backup's container on folders of this machine, which has two recordings."""

    def __init__(self, folder: Path) -> None:
        self.data, self.backup = folder / "data", folder / "backup"
        self.backup.mkdir()
        (self.data / "uploads").mkdir(parents=True)
        for name in ("one", "two"):
            (self.data / "uploads" / name).write_text(name)
        programs = folder / "bin"
        programs.mkdir()
        (programs / "whisperfleet").symlink_to(Path(sys.executable).parent / "whisperfleet")
        self._environ = {
            "PATH": f"{programs}:{os.defpath}",
            "HOME": str(folder),
            "WHISPER_DATA_DIR": str(self.data),
        }

    def run(self) -> subprocess.CompletedProcess[str]:
        [container] = BACKUP_TEMPLATE["spec"]["containers"]
        shell, options, script = container["command"]
        script = script.replace("/data", str(self.data)).replace("/backup", str(self.backup))
        return subprocess.run(
            [shell, options, script], env=self._environ, capture_output=True, text=True, timeout=60
        )

    def recordings(self) -> set[str]:
        return {path.name for path in (self.backup / "uploads").iterdir()}


@pytest.mark.anyio
async def test_a_backup_has_the_database_and_the_recordings(tmp_path: Path) -> None:
    backups = Backups(tmp_path)
    assert backups.run().returncode != 0, "there is no database: the job has failed"
    database = Database(None, backups.data)
    await database.open()
    old = backups.backup / "2020-01-01T000000Z.db"
    old.touch()
    os.utime(old, (0, 0))
    done = backups.run()
    await database.close()
    assert done.returncode == 0, done.stderr
    [written] = backups.backup.glob("*.db")
    assert written.stat().st_mode & 0o777 == 0o600
    assert written.stat().st_size > 0
    assert written != old, "it is older than a fortnight"
    assert backups.recordings() == {"one", "two"}
    (backups.data / "uploads" / "one").unlink()
    assert backups.run().returncode == 0
    assert backups.recordings() == {"one", "two"}, "a recording that has gone stays for a fortnight"


SCHEMAS = {
    kind: json.loads((ROOT / "tests" / "schemas" / f"{kind.lower()}.json").read_text())
    for kind in ("ServiceMonitor", "PrometheusRule")
}


@pytest.mark.parametrize("document", [MONITOR, RULES], ids=lambda document: document["kind"])
def test_the_objects_of_the_prometheus_operator_are_valid(document: dict[str, Any]) -> None:
    jsonschema.validate(document, SCHEMAS[document["kind"]])
    for wrong in (
        {"selectors": {}},
        {"groups": [{"name": "x", "rule": []}]},
        {"endpoints": [{"ports": "http"}]},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document | {"spec": document["spec"] | wrong}, SCHEMAS[document["kind"]])


def test_the_rules_are_those_that_promtool_tests() -> None:
    assert RULES["spec"]["groups"] == [GROUP], "run `python -m tests.tables`"
    assert any("absent(" in rule["expr"] for rule in GROUP["rules"])
