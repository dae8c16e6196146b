"""What the doctor says of troubles; and one real run of it."""

import ast
import asyncio
import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pynvml
import pytest

from app.commands.doctor import exit_code
from app.doctor import fleet, gpus, machine, model
from app.doctor.finding import Finding, Severity, fail, failed_with, ok, warn
from app.errors import ModelUnavailable
from app.known_errors import GUIDE, KNOWN_ERRORS, diagnose, explain, last_line
from app.settings import load_settings
from tests.engines.test_slot import TightSlot
from workers.messages import Clip, Decoding

ROOT = Path(__file__).parents[1]
GUIDE_TEXT = (ROOT / GUIDE).read_text(encoding="utf-8")
GB = 10**9
H200 = gpus.Gpu("NVIDIA H200", "GPU-1", (9, 0), (139 * GB, 140 * GB))
A10 = gpus.Gpu("NVIDIA A10", "GPU-2", (8, 6), (22 * GB, 24 * GB))
WITHOUT_MESSAGE = {"slow-first-load", "wrong-transcripts"}


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def sections() -> dict[str, list[str]]:
    """The guide's sections by anchor, with the messages that each one quotes."""
    found = {}
    for part in re.split(r"^#+ ", GUIDE_TEXT, flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        blocks = re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL)
        found[slug(heading)] = [line for block in blocks for line in block.splitlines()]
    return found


MESSAGES = [(message, anchor) for anchor, messages in sections().items() for message in messages]


@pytest.mark.parametrize(("message", "anchor"), MESSAGES)
def test_every_message_in_the_guide_is_known(message: str, anchor: str) -> None:
    trouble = diagnose(message)
    assert trouble is not None
    assert (trouble.anchor, bool(trouble.meaning), bool(trouble.cure)) == (anchor, True, True)


def test_every_trouble_has_its_section_and_a_message_in_it() -> None:
    quoted = {anchor for _, anchor in MESSAGES}
    assert {trouble.anchor for trouble in KNOWN_ERRORS} == quoted
    assert set(sections()) >= WITHOUT_MESSAGE


def anchors_named(path: Path) -> Iterator[str]:
    """The sections that a module's findings point to: the last argument of `warn` and `fail`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("warn", "fail")
        ):
            match node.args[3:]:
                case [ast.Constant(value=str(anchor))]:
                    yield anchor


def test_every_anchor_exists() -> None:
    named = {anchor for path in (ROOT / "app/doctor").glob("*.py") for anchor in anchors_named(path)}
    linked = set(re.findall(r"\(#([\w-]+)\)", GUIDE_TEXT))
    assert named
    assert named | linked <= set(sections())


def test_every_section_tells_how_the_doctor_shows_it() -> None:
    for part in re.split(r"^## ", GUIDE_TEXT, flags=re.MULTILINE)[1:]:
        assert "*Doctor:*" in part, part.splitlines()[0]


def test_an_error_is_explained_in_one_line() -> None:
    trace = 'Traceback:\n  File "x"\nRuntimeError: CUDA failed with error out of memory\n"""'
    assert last_line(trace) == "CUDA failed with error out of memory"
    said = explain(RuntimeError(trace))
    assert said.startswith("CUDA failed with error out of memory. The GPU's memory is full.")
    assert said.endswith(f"({GUIDE}#gpu-out-of-memory)")
    assert "\n" not in said
    assert explain("something else") == "something else"
    assert last_line(KeyError()) == "KeyError()"


def of_gpus(
    found: gpus.Machine, device: str = "auto", visible: tuple[str, ...] | None = ("0", "1"), **environ: str
) -> list[Finding]:
    return list(gpus.findings(found, device, visible, environ))


def test_two_gpus() -> None:
    driver, first, second = of_gpus(gpus.Machine("570.124.06", (H200, A10)), CUDA_VISIBLE_DEVICES="0,1")
    assert driver == ok("NVIDIA driver", "570.124.06, 2 GPUs, CUDA_VISIBLE_DEVICES=0,1")
    assert first.found.startswith(
        "NVIDIA H200, 139.0 GB of 140.0 GB free, compute capability 9.0; the driver"
    )
    assert second == ok("GPU 1", "NVIDIA A10, 22.0 GB of 24.0 GB free, compute capability 8.6")


def test_an_old_driver() -> None:
    old = gpus.Machine("470.256.02", (A10,))
    driver, _ = of_gpus(old)
    assert driver.status is Severity.FAIL
    assert "update it to 525 or newer" in driver.cure
    assert driver.cure.endswith("#driver-too-old)")
    for unused in (of_gpus(old, "cpu"), of_gpus(old, visible=())):
        assert [finding.status for finding in unused] == [Severity.OK, Severity.OK]
    assert of_gpus(old, visible=None)[0].status is Severity.FAIL


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"capability": (5, 2)}, Severity.FAIL, "#no-kernel-image"),
        ({"memory": (GB, 24 * GB)}, Severity.WARN, "#gpu-out-of-memory"),
        ({"memory": None}, Severity.OK, ""),
        ({"mig": ()}, Severity.FAIL, "#wrong-gpu-names"),
        ({"mig": ("MIG-a", "MIG-b")}, Severity.WARN, "WHISPER_GPUS=MIG-a,MIG-b"),
    ],
)
def test_a_gpu_with_a_peculiarity(changes: dict[str, object], status: Severity, said: str) -> None:
    _, finding = of_gpus(gpus.Machine("570.1", (replace(A10, **changes),)))  # type: ignore[arg-type]
    assert finding.status is status
    assert said in finding.cure


@pytest.mark.parametrize("entry", ["0", "GPU-2", "GPU-", "MIG-a", "MIG-GPU-2/1/0"])
def test_ways_to_name_a_gpu(entry: str) -> None:
    divided = replace(A10, mig=("MIG-a",))
    _, finding = of_gpus(gpus.Machine("570.1", (divided,)), visible=(entry,))
    assert finding.status is (Severity.OK if entry.startswith("MIG-") else Severity.WARN)
    assert "not used" not in finding.found


def test_a_gpu_that_is_left_out_does_no_harm() -> None:
    old = replace(A10, capability=(3, 5))
    _, first, second = of_gpus(gpus.Machine("570.1", (old, H200)), visible=("1",))
    assert (first.status, second.status) == (Severity.OK, Severity.OK)
    assert first.found.endswith("; not used")


class Nvml:
    """NVML with one GPU that is divided and shares its memory with the CPU."""

    class NVMLError(Exception):
        pass

    NVML_DEVICE_MIG_ENABLE = 1

    def __init__(self, error: str = "") -> None:
        self.error = error
        self.open = 0

    def nvmlInit(self) -> None:
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        if self.error:
            raise self.NVMLError(self.error)
        return 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return "570.124.06"

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return "parent"

    def nvmlDeviceGetName(self, handle: str) -> str:
        return "NVIDIA A100"

    def nvmlDeviceGetUUID(self, handle: str) -> str:
        return {"parent": "GPU-9"}.get(handle, f"MIG-{handle}")

    def nvmlDeviceGetCudaComputeCapability(self, handle: str) -> tuple[int, int]:
        return 8, 0

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> object:
        raise self.NVMLError("Not Supported")

    def nvmlDeviceGetMigMode(self, handle: str) -> list[int]:
        return [1, 1]

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: str) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: str, index: int) -> str:
        if index > 1:
            raise self.NVMLError("Not Found")
        return str(index)


def test_nvml_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in vars(Nvml):
        assert name.startswith("_") or hasattr(pynvml, name)
    nvml = Nvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    gpu = gpus.Gpu("NVIDIA A100", "GPU-9", (8, 0), None, ("MIG-0", "MIG-1"))
    assert gpus.look() == gpus.Machine("570.124.06", (gpu,))
    nvml.error = "Unknown Error"
    assert gpus.look() == gpus.Machine(error="Unknown Error")
    assert nvml.open == 0


@pytest.mark.parametrize(
    ("error", "device", "status", "said"),
    [
        ("NVML Shared Library Not Found", "auto", Severity.OK, ""),
        ("NVML Shared Library Not Found", "cuda", Severity.FAIL, "#no-gpu"),
        ("RM has detected an NVML/RM version mismatch.", "auto", Severity.WARN, "Reboot"),
        ("RM has detected an NVML/RM version mismatch.", "cuda", Severity.FAIL, "Reboot"),
        ("RM has detected an NVML/RM version mismatch.", "cpu", Severity.OK, ""),
        ("Unknown Error", "cuda", Severity.FAIL, "#container-lost-gpus"),
    ],
)
def test_nvml_that_tells_nothing(error: str, device: str, status: Severity, said: str) -> None:
    [driver] = of_gpus(gpus.Machine(error=error), device)
    assert driver.status is status
    assert said in driver.cure


def test_a_model_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(name: str) -> int:
        raise ModelUnavailable("not on this machine, and cannot be downloaded: no connection")

    monkeypatch.setattr(model, "_is_cached", lambda name: False)
    monkeypatch.setattr(model, "_size_to_download", unreachable)
    finding, files = model.look("small", falls_back=False)
    assert (finding.status, files) == (Severity.FAIL, None)
    assert "WHISPER_MODEL" in finding.cure
    assert finding.cure.endswith("#model-not-downloadable)")
    assert model.look("small", falls_back=True)[0].status is Severity.WARN
    monkeypatch.setattr(model, "_size_to_download", lambda name: 484 * 10**6)
    assert "484 MB will be downloaded" in model.look("small", falls_back=False)[0].found


def test_the_demo_model_says_what_it_cannot_do() -> None:
    finding, files = model.look("demo", falls_back=False)
    assert finding.status is Severity.WARN
    assert "synthetic speech and nothing else" in finding.cure
    assert files is not None


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    with (tmp_path / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield tmp_path


def test_a_data_folder_that_another_one_uses(locked: Path) -> None:
    finding = machine.data_folder(load_settings(data_dir=locked, max_upload_mb=1))
    assert finding.status is Severity.WARN
    assert "another whisperfleet uses this folder" in finding.found


def test_data_folders(tmp_path: Path) -> None:
    new = tmp_path / "a" / "b"
    assert machine.data_folder(load_settings(data_dir=new, max_upload_mb=1)).status is Severity.OK
    assert not new.exists()
    assert machine.data_folder(load_settings(data_dir=new, max_upload_mb=10**9)).cure.endswith(
        "#507-disk-full)"
    )
    (tmp_path / "file").touch()
    assert machine.data_folder(load_settings(data_dir=tmp_path / "file")).status is Severity.FAIL


def test_settings_are_shown_and_secrets_are_not() -> None:
    finding = machine.settings_read(load_settings(api_keys="sk-secret", gpus="0,1"), {"WHISPER_GPU": "0"})
    assert finding.found == "WHISPER_API_KEYS=***, WHISPER_GPUS=0,1"
    assert finding.cure == "WHISPER_GPU is no setting; is WHISPER_GPUS meant?"


def test_a_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        finding = machine.port(load_settings(host="127.0.0.1", port=server.getsockname()[1]))
    assert finding.status is Severity.WARN
    assert finding.cure.endswith("#port-in-use)")


def test_children_are_spawned() -> None:
    assert asyncio.run(fleet.start_method()) == "spawn"
    assert machine.start_method("spawn", None).status is Severity.OK
    assert machine.start_method("spawn", "fork").status is Severity.WARN
    assert machine.start_method("fork", None).status is Severity.FAIL
    assert machine.start_method(RuntimeError("process 7 died"), None).cure.endswith("#process-died)")


def test_exit_codes() -> None:
    fine, doubtful, broken = ok("a", ""), warn("b", "", ""), fail("c", "", "")
    assert [exit_code(found) for found in ([fine, doubtful], [fine, broken])] == [0, 1]
    assert exit_code([broken, replace(broken, senseless=True)]) == 2
    assert failed_with("d", RuntimeError("CUDA failed with error out of memory")).cure.endswith("memory)")


def doctor(folder: Path, **settings: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WHISPER_")}
    told = {f"WHISPER_{name.upper()}": value for name, value in settings.items()}
    told |= {"WHISPER_DATA_DIR": str(folder), "WHISPER_PORT": "0", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "app.cli", "doctor"],
        env=kept | told,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def left_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """What still runs of the process and its children: they share its session.

    Python's own resource tracker notices a moment later that they are gone.
    """
    deadline = time.monotonic() + 5
    while left := [one for one in psutil.process_iter() if _session(one) == process.pid]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return left


def _session(process: psutil.Process) -> int | None:
    try:
        return None if process.status() == psutil.STATUS_ZOMBIE else os.getsid(process.pid)
    except (psutil.Error, ProcessLookupError):
        return None


@pytest.mark.parametrize(
    ("name", "value"), [("device", "tpu"), ("model", "enormous"), ("compute_type", "int1")]
)
def test_a_senseless_setting_ends_with_2(tmp_path: Path, name: str, value: str) -> None:
    process = doctor(tmp_path, **({"device": "cpu", "model": "demo", "cpu_workers": "1"} | {name: value}))
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 2, said
    assert re.search(rf"^FAIL .*WHISPER_{name.upper()}=", said, re.MULTILINE), said


def test_a_real_run(tmp_path: Path) -> None:
    process = doctor(tmp_path, device="cpu", cpu_workers="2", model="demo")
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert said.splitlines()[-1].endswith("1 warn")
    for worker in range(2):
        [line] = re.findall(rf"^ok   worker {worker}: .*", said, re.MULTILINE)
        assert f"cpu {worker}, int8" in line
        assert fleet.SAMPLE_TEXT in line
    assert left_of(process) == []
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_all_processes(tmp_path: Path) -> None:
    process = doctor(tmp_path, device="cpu", cpu_workers="2", model="demo")
    assert process.stdout is not None
    for line in process.stdout:
        if "speech detector" in line:
            break
    time.sleep(0.5)  # the workers are on their way
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert left_of(process) == []


def test_a_worker_that_has_to_make_do_with_less_is_a_warning() -> None:
    slot = TightSlot({}, too_large=("float32",))
    clip = Clip(bytes(32_000), ((0, 16_000),), Decoding("main"))
    finding = asyncio.run(fleet._transcribe_on(slot, clip))
    assert finding.status is Severity.WARN
    assert "main in int8_float32 instead of float32: CUDA failed" in finding.cure
