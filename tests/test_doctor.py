"""The doctor's checks, the guide to error messages, and real runs of `whisperfleet doctor`."""

import ast
import contextlib
import fcntl
import os
import random
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
import pytest

from app.commands.doctor import gpus, machine, model_checks, worker_checks
from app.commands.doctor.command import backend_finding, exit_code, plan_finding
from app.commands.doctor.finding import Finding, Severity, fail, fail_with, ok, warn
from app.common.errors import ModelUnavailable
from app.common.known_errors import GUIDE, diagnose, explain, known_errors, last_line, read_errors
from app.engines.nvml import NvidiaDriver, PresentGpu, query_nvml
from app.engines.plan import Plan, make_plan
from app.engines.window_request import WindowRequest
from app.settings import load_settings
from tests.cases import read_cases
from tests.engines.test_slot import LowMemorySlot
from tests.fake_nvml import FakeNvml, mig_gpu, whole_gpu
from tests.model_variants import Edit, copy_demo, with_alignment_heads, with_mel_bins
from tests.pages import slug
from tests.workers.media.voice_models import kaldi_model
from workers.messages import DecodingOptions

ROOT = Path(__file__).parents[1]
GUIDE_TEXT = (ROOT / GUIDE).read_text(encoding="utf-8")
CASES = read_cases("doctor")
GB = 10**9
H200 = PresentGpu("GPU-1", None, (9, 0), "NVIDIA H200", (139 * GB, 140 * GB))
A10 = PresentGpu("GPU-2", None, (8, 6), "NVIDIA A10", (22 * GB, 24 * GB))
WITHOUT_MESSAGE = {"nobody-can-say-who-speaks", "slow-first-load", "wrong-transcripts"}

pytestmark = pytest.mark.anyio


def sections() -> set[str]:
    """The anchors of the guide's sections: headings of the second level."""
    return {slug(heading) for heading in re.findall(r"^## (.+)$", GUIDE_TEXT, re.MULTILINE)}


def index() -> dict[str, tuple[list[str], str]]:
    """The guide's index by section: the messages that it quotes, and what the doctor shows."""
    rows = re.findall(r"^\| (.+) \| \[.+\]\(#([\w-]+)\) \| (.+) \|$", GUIDE_TEXT, re.MULTILINE)
    return {
        anchor: (re.findall(r"`([^`]+)`", cell.replace(r"\|", "|")), shown) for cell, anchor, shown in rows
    }


INDEX = index()
MESSAGES = [
    (message, anchor)
    for anchor, (messages, _) in INDEX.items()
    for message in messages
    if anchor not in WITHOUT_MESSAGE
]


@pytest.mark.parametrize(("message", "anchor"), MESSAGES)
def test_every_message_in_the_guide_is_known(message: str, anchor: str) -> None:
    known = diagnose(message)
    assert known is not None
    assert (known.anchor, bool(known.meaning), bool(known.remedy)) == (anchor, True, True)


def test_every_known_error_has_a_section_that_quotes_a_message() -> None:
    quoted = {anchor for _, anchor in MESSAGES}
    assert {known.anchor for known in known_errors()} == quoted


def test_the_index_lists_every_section_with_what_the_doctor_shows() -> None:
    assert sections() == INDEX.keys() | {"find-it-by-the-message"}
    assert all(shown for _, shown in INDEX.values())


@pytest.mark.parametrize(("entry", "message"), CASES["mistakes"])
def test_a_mistake_in_the_file_of_known_errors_is_named(tmp_path: Path, entry: str, message: str) -> None:
    path = tmp_path / "errors.toml"
    path.write_text(f"[[errors]]\nanchor = 'gone'\n{entry}\n")
    with pytest.raises(ValueError, match=f"^{message}".replace("(", "\\(").replace(")", "\\)")):
        read_errors(path)


def anchors_named(path: Path) -> Iterator[str]:
    """The anchors in a module's findings: the last argument of `warn` and `fail`."""
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
    named = {anchor for path in (ROOT / "app/commands/doctor").glob("*.py") for anchor in anchors_named(path)}
    linked = set(re.findall(r"\(#([\w-]+)\)", GUIDE_TEXT))
    assert named
    assert named | linked <= sections()


def test_an_error_is_explained_in_one_line() -> None:
    trace = 'Traceback:\n  File "x"\nRuntimeError: CUDA failed with error out of memory\n"""'
    assert last_line(trace) == "CUDA failed with error out of memory"
    explained = explain(RuntimeError(trace))
    assert explained.startswith("CUDA failed with error out of memory. The GPU's memory is full.")
    assert explained.endswith(f"({GUIDE}#gpu-out-of-memory)")
    assert "\n" not in explained
    assert explain("something else") == "something else"
    assert last_line(KeyError()) == "KeyError()"


def check(
    nvml: NvidiaDriver, device: str = "auto", visible: tuple[str, ...] | None = ("0", "1"), **environ: str
) -> list[Finding]:
    return list(gpus.check_gpus(nvml, device, visible, environ))


def test_two_gpus() -> None:
    driver, first, second = check(NvidiaDriver("570.124.06", (H200, A10)), CUDA_VISIBLE_DEVICES="0,1")
    assert driver == ok("NVIDIA driver", "570.124.06, 2 GPUs, CUDA_VISIBLE_DEVICES=0,1")
    driver, *_ = check(NvidiaDriver("570.124.06", (H200, A10)), CUDA_VISIBLE_DEVICES="0,9,1")
    assert driver.found.endswith(
        "CUDA_VISIBLE_DEVICES=0,9,1: CUDA finds no GPU 9, and ignores what follows it"
    )
    assert first.found.startswith(
        "NVIDIA H200, 139.0 GB of 140.0 GB free, compute capability 9.0; the driver"
    )
    assert second == ok("GPU 1", "NVIDIA A10, 22.0 GB of 24.0 GB free, compute capability 8.6")


def test_an_old_driver() -> None:
    old = NvidiaDriver("470.256.02", (A10,))
    driver, _ = check(old)
    assert driver.severity is Severity.FAIL
    assert "update it to 525 or newer" in driver.remedy
    assert driver.remedy.endswith("#driver-too-old)")
    for unused in (check(old, "cpu"), check(old, visible=())):
        assert [finding.severity for finding in unused] == [Severity.OK, Severity.OK]
    assert check(old, visible=None)[0].severity is Severity.FAIL


@pytest.mark.parametrize(("capability", "driver"), CASES["drivers"])
def test_the_driver_that_each_generation_needs(capability: list[int], driver: int) -> None:
    gpu = replace(A10, capability=tuple(capability))
    assert gpus.min_driver(gpu.capability) == driver
    assert check(NvidiaDriver(f"{driver}.10", (gpu,)))[0].severity is Severity.OK
    old = check(NvidiaDriver(f"{driver - 1}.10", (gpu,)))[0]
    assert old.severity is Severity.FAIL
    assert f"update it to {driver} or newer" in old.remedy


def test_the_newest_gpu_in_use_decides_on_the_driver() -> None:
    newer = NvidiaDriver("535.183", (H200, A10))
    [driver, *_] = check(newer)
    assert "too old for NVIDIA H200 (compute capability 9.0): update it to 570" in driver.remedy
    assert check(newer, visible=("1",))[0].severity is Severity.OK, "only the A10 is used"
    assert check(NvidiaDriver("unknown", (H200,)))[0].severity is Severity.OK


@pytest.mark.parametrize(
    ("changes", "severity", "remedy"),
    [
        ({"capability": (5, 2)}, Severity.FAIL, "#no-kernel-image"),
        ({"memory": (GB, 24 * GB)}, Severity.WARN, "#gpu-out-of-memory"),
        ({"memory": None}, Severity.OK, ""),
        ({"instances": ()}, Severity.FAIL, "#wrong-gpu-names"),
        ({"instances": ("MIG-a", "MIG-b")}, Severity.WARN, "WHISPER_GPUS=MIG-a,MIG-b"),
    ],
)
def test_gpus_with_limitations(changes: dict[str, object], severity: Severity, remedy: str) -> None:
    _, finding = check(NvidiaDriver("570.1", (replace(A10, **changes),)))  # type: ignore[arg-type]
    assert finding.severity is severity
    assert remedy in finding.remedy


@pytest.mark.parametrize("entry", ["0", "GPU-2", "GPU-", "MIG-a", "MIG-GPU-2/1/0"])
def test_ways_to_name_a_gpu(entry: str) -> None:
    divided = replace(A10, instances=("MIG-a",))
    _, finding = check(NvidiaDriver("570.1", (divided,)), visible=(entry,))
    assert finding.severity is (Severity.OK if entry.startswith("MIG-") else Severity.WARN)
    assert "not used" not in finding.found


def test_an_excluded_gpu_is_not_checked() -> None:
    old = replace(A10, capability=(3, 5))
    _, first, second = check(NvidiaDriver("570.1", (old, H200)), visible=("1",))
    assert (first.severity, second.severity) == (Severity.OK, Severity.OK)
    assert first.found.endswith("; not used")


def plan_of(monkeypatch: pytest.MonkeyPatch, nvml: FakeNvml, **given: object) -> Plan:
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return make_plan(load_settings(model="demo", **given))


def test_the_mig_instances_that_are_used_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml(mig_gpu("GPU-9", "MIG-0", "MIG-1"), mig_gpu("GPU-8"), whole_gpu("GPU-7"))
    plan = plan_of(monkeypatch, nvml)
    finding = plan_finding(plan, 4)
    assert finding.found.startswith("3 workers on cuda (MIG-0,MIG-1,GPU-7)")
    assert finding.found.endswith("; 4 media workers")
    assert finding.severity is Severity.WARN
    assert "GPU 1 has MIG enabled but no instances" in finding.remedy
    _, divided, empty, whole = gpus.check_gpus(query_nvml(), "auto", plan.devices.visible, {})
    assert divided.severity is Severity.OK
    assert divided.found.endswith("MIG: MIG-0, MIG-1; used: MIG-0, MIG-1")
    assert empty.found.endswith("not used")
    assert "not used" not in whole.found


def test_the_backend_is_shown_with_its_reason_and_the_build_of_torch() -> None:
    found = {}
    for backend in ("auto", "torch"):
        settings = load_settings(model="demo", device="cpu", backend=backend)
        found[backend] = backend_finding(make_plan(settings), settings).found
    assert found["auto"] == "ctranslate2 (WHISPER_BACKEND=auto)"
    assert re.fullmatch(
        r"torch \(WHISPER_BACKEND=torch\), torch \d\S+ for (CPUs alone|CUDA \S+)", found["torch"]
    )


def test_a_part_of_the_mig_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(monkeypatch, FakeNvml(mig_gpu("GPU-9", "MIG-0", "MIG-1")), gpus="MIG-1")
    _, divided = gpus.check_gpus(query_nvml(), "auto", plan.devices.visible, {})
    assert divided.found.endswith("MIG: MIG-0, MIG-1; used: MIG-1")
    assert plan_finding(plan, 4).severity is Severity.OK


@pytest.mark.parametrize(
    ("error", "device", "severity", "remedy"),
    [
        ("NVML Shared Library Not Found", "auto", Severity.OK, ""),
        ("NVML Shared Library Not Found", "cuda", Severity.FAIL, "#no-gpu"),
        ("RM has detected an NVML/RM version mismatch.", "auto", Severity.WARN, "Reboot"),
        ("RM has detected an NVML/RM version mismatch.", "cuda", Severity.FAIL, "Reboot"),
        ("RM has detected an NVML/RM version mismatch.", "cpu", Severity.OK, ""),
        ("Unknown Error", "cuda", Severity.FAIL, "#container-lost-gpus"),
    ],
)
def test_nvml_fails(error: str, device: str, severity: Severity, remedy: str) -> None:
    [driver] = check(NvidiaDriver(error=error), device)
    assert driver.severity is severity
    assert remedy in driver.remedy


def test_a_model_that_cannot_be_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(name: str) -> int:
        raise ModelUnavailable("not on this machine, and cannot be downloaded: no connection")

    monkeypatch.setattr(model_checks, "local_folder", lambda name: None)
    monkeypatch.setattr(model_checks, "_size_to_download", unreachable)
    finding, files = model_checks.check_model("small", falls_back=False)
    assert (finding.severity, files) == (Severity.FAIL, None)
    assert "WHISPER_MODEL" in finding.remedy
    assert finding.remedy.endswith("#model-not-downloadable)")
    assert model_checks.check_model("small", falls_back=True)[0].severity is Severity.WARN
    monkeypatch.setattr(model_checks, "_size_to_download", lambda name: 484 * 10**6)
    assert "484 MB will be downloaded" in model_checks.check_model("small", falls_back=False)[0].found


def test_the_demo_model_warns_of_its_limits() -> None:
    finding, files = model_checks.check_model("demo", falls_back=False)
    assert finding.severity is Severity.WARN
    assert "only synthetic speech" in finding.remedy
    assert files is not None


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    with (tmp_path / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield tmp_path


def test_a_data_folder_that_another_service_uses(locked: Path) -> None:
    finding = machine.check_data_dir(load_settings(data_dir=locked, max_upload_mb=1))
    assert finding.severity is Severity.WARN
    assert "another whisperfleet uses this folder" in finding.found


def test_data_folders(tmp_path: Path) -> None:
    new = tmp_path / "a" / "b"
    assert machine.check_data_dir(load_settings(data_dir=new, max_upload_mb=1)).severity is Severity.OK
    assert not new.exists()
    assert machine.check_data_dir(load_settings(data_dir=new, max_upload_mb=10**9)).remedy.endswith(
        "#507-disk-full)"
    )
    (tmp_path / "file").touch()
    assert machine.check_data_dir(load_settings(data_dir=tmp_path / "file")).severity is Severity.FAIL


def test_settings_are_shown_and_secrets_are_not() -> None:
    finding = machine.check_settings(load_settings(api_keys="sk-secret", gpus="0,1"), {"WHISPER_GPU": "0"})
    assert finding.found == "WHISPER_API_KEYS=***, WHISPER_GPUS=0,1"
    assert finding.remedy == "WHISPER_GPU is not a setting; did you mean WHISPER_GPUS?"


RANDOM = [random.Random(number).randbytes(16).hex() for number in range(4)]
GUESSABLE = ["sk-one", "a" * 40, "0123456789" * 4, "MyPassword-of-2026-x", "whisperfleet-is-mine"]


def test_guessable_keys_and_open_addresses_are_named() -> None:
    for number, key in enumerate(GUESSABLE):
        finding = machine.check_keys(load_settings(api_keys=f"bob:{RANDOM[0]},alice:{key}"))
        assert (finding.severity, "alice" in finding.remedy) == (Severity.WARN, True), number
        assert key not in finding.remedy
        assert "bob" not in finding.remedy
    for host, severity in (("0.0.0.0", Severity.WARN), ("::", Severity.WARN), ("::1", Severity.OK)):
        finding = machine.check_keys(load_settings(host=host))
        assert (finding.severity, "WHISPER_API_KEYS" in finding.remedy) == (severity, severity != Severity.OK)
        assert machine.check_keys(load_settings(host=host, api_keys=RANDOM[0])).severity is Severity.OK


@pytest.mark.parametrize(
    ("keys", "found", "severity"),
    [
        ("", "none: whoever reaches the service sees all jobs", Severity.OK),
        (RANDOM[0], "1 without a name, 0 with names", Severity.OK),
        (
            "{},alice:{},alice:{},root:{}:operator".format(*RANDOM),
            "1 without a name, 2 with names",
            Severity.OK,
        ),
        (",".join(RANDOM[:2]), "2 without a name, 0 with names", Severity.WARN),
    ],
)
def test_several_keys_without_names(keys: str, found: str, severity: Severity) -> None:
    finding = machine.check_keys(load_settings(api_keys=keys))
    assert (finding.found, finding.severity) == (found, severity)
    assert ("NAME:KEY" in finding.remedy) is (severity is Severity.WARN)


def test_a_file_of_keys_that_is_not_there(tmp_path: Path) -> None:
    finding = machine.check_keys(load_settings(api_keys_file=tmp_path / "keys"))
    assert finding.invalid_setting
    assert "WHISPER_API_KEYS_FILE" in finding.found


def test_a_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        finding = machine.check_port(load_settings(host="127.0.0.1", port=server.getsockname()[1]))
    assert finding.severity is Severity.WARN
    assert finding.remedy.endswith("#port-in-use)")


def test_a_host_that_no_machine_can_have() -> None:
    finding = machine.check_port(load_settings(host="a" * 70))
    assert finding.severity is Severity.FAIL
    assert "WHISPER_HOST" in finding.remedy


async def test_children_are_spawned() -> None:
    assert await worker_checks.child_start_method() == "spawn"
    assert machine.check_start_method("spawn", None).severity is Severity.OK
    assert machine.check_start_method("spawn", "fork").severity is Severity.WARN
    assert machine.check_start_method("fork", None).severity is Severity.FAIL
    assert machine.check_start_method(RuntimeError("process 7 crashed"), None).remedy.endswith(
        "#process-crashed)"
    )


def test_exit_codes() -> None:
    fine, doubtful, broken = ok("a", ""), warn("b", "", ""), fail("c", "", "")
    assert [exit_code(found) for found in ([fine, doubtful], [fine, broken])] == [0, 1]
    assert exit_code([broken, replace(broken, invalid_setting=True)]) == 2
    assert fail_with("d", RuntimeError("CUDA failed with error out of memory")).remedy.endswith("memory)")


def doctor(folder: Path, **settings: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WHISPER_")}
    given = {f"WHISPER_{name.upper()}": value for name, value in settings.items()}
    given |= {"WHISPER_DATA_DIR": str(folder), "WHISPER_PORT": "0", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "app.cli", "doctor"],
        env=kept | given,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # A shell's background jobs, and so this test in one, ignore SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def survivors_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes of the session that `process` leads which are still running.

    Python's resource tracker ends a moment after the others.
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


@pytest.mark.server
def test_a_real_run(tmp_path: Path) -> None:
    process = doctor(tmp_path, device="cpu", cpu_workers="2", model="demo")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert output.splitlines()[-1].endswith("1 warn")
    for worker in range(2):
        [line] = re.findall(rf"^ok   worker {worker}: .*", output, re.MULTILINE)
        assert f"cpu {worker}, int8" in line
        assert worker_checks.SAMPLE_TEXT in line
    assert survivors_of(process) == []
    assert list(tmp_path.iterdir()) == []


def spawned_children(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The children that run a task, unlike multiprocessing's resource tracker."""
    children = []
    for child in psutil.Process(process.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            if "spawn_main" in " ".join(child.cmdline()):
                children.append(child)
    return children


@pytest.mark.server
def test_ctrl_c_ends_all_processes(tmp_path: Path) -> None:
    process = doctor(tmp_path, device="cpu", cpu_workers="2", model="demo")
    assert process.stdout is not None
    for line in process.stdout:
        if "speech detector" in line:
            break
    while not spawned_children(process):  # of the workers, which load for some time
        assert process.poll() is None
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert survivors_of(process) == []


async def test_a_worker_with_a_smaller_compute_type_is_a_warning() -> None:
    slot = LowMemorySlot({}, too_large=("float32",))
    window = WindowRequest(bytes(32_000), 0, 16_000, ((0, 16_000),), DecodingOptions("main"))
    [finding] = await worker_checks.transcribe_on(slot, window, "worker 0")
    assert finding.severity is Severity.WARN
    assert "main in int8_float32 instead of float32: CUDA failed" in finding.remedy


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        pytest.param(
            with_alignment_heads(None), r"warn worker 0: .*\n +.*no word times: ", marks=pytest.mark.soak
        ),
        (with_mel_bins(128), r"FAIL worker 0: the model's files do not fit together: "),
    ],
)
@pytest.mark.server
def test_a_run_with_an_odd_model(tmp_path: Path, edit: Edit, line: str) -> None:
    folder = copy_demo(tmp_path / "model", edit)
    process = doctor(tmp_path, device="cpu", cpu_workers="1", model=str(folder))
    output, _ = process.communicate(timeout=120)
    assert re.search(line, output), output
    assert process.returncode == ("FAIL" in line)


async def test_the_speaker_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundled = await model_checks.check_speaker_model("", tmp_path)
    assert (bundled.severity, bundled.found[:18]) == (Severity.OK, "resemblyzer 0.1.4,")
    other = str(kaldi_model(tmp_path / "voices.onnx"))
    assert await model_checks.check_speaker_model(other, tmp_path) == ok(
        "speaker model", f"{other} embeds voices"
    )
    (tmp_path / "broken.onnx").touch()
    broken = await model_checks.check_speaker_model(str(tmp_path / "broken.onnx"), tmp_path)
    assert broken.severity is Severity.WARN
    assert "Supported are ONNX files of WeSpeaker" in broken.found
    unknown = await model_checks.check_speaker_model("voices", tmp_path)
    assert (unknown.severity, unknown.invalid_setting) == (Severity.FAIL, True)
    monkeypatch.setattr("app.engines.speaker_model.find_spec", lambda name: None)
    missing = await model_checks.check_speaker_model("", tmp_path)
    assert missing.severity is Severity.WARN
    assert "`pip install --no-deps resemblyzer`" in missing.found
