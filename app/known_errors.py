"""What the error messages of CUDA, its driver and the libraries mean, and what to do about them. Pure.

Each row has a section in docs/trouble.md, which says more.
"""

import re
from dataclasses import dataclass

GUIDE = "docs/trouble.md"


@dataclass(frozen=True, slots=True)
class KnownError:
    """A known kind of message."""

    pattern: str  # regular expression, found anywhere in the message, in any case
    meaning: str
    cure: str
    anchor: str  # the heading of its section in the guide

    @property
    def advice(self) -> str:
        """What it means and what to do, in one line."""
        return f"{self.meaning} {self.cure} ({GUIDE}#{self.anchor})"


# The first row that fits counts: what is more particular stands further up.
KNOWN_ERRORS = (
    KnownError(
        r"re-initialize CUDA in forked subprocess",
        "A process was forked that had used CUDA before, and CUDA cannot be used in a fork.",
        "whisperfleet spawns its workers: look for code around it that forks (gunicorn --preload, "
        "set_start_method('fork')), and start `whisperfleet serve` on its own.",
        "forked-subprocess",
    ),
    KnownError(
        r"CUDA.{0,20} initialization error|cudaErrorInitializationError|CUDA driver initialization failed",
        "CUDA could not be started in the worker: a fork of a process that uses CUDA, or a driver that is "
        "not fully loaded.",
        "See whether `nvidia-smi` works and /dev/nvidia-uvm exists (`sudo nvidia-modprobe -u -c=0`), then "
        "restart.",
        "initialization-error",
    ),
    KnownError(
        r"libcublas(Lt)?\.so\.12|cublas(Lt)?64_12\.dll",
        "cuBLAS 12, the one CUDA library that the models need, is not installed.",
        "`.venv/bin/python -m pip install nvidia-cublas-cu12`, or `make run EXTRAS=gpu`. cuBLAS of CUDA 11 "
        "or 13 will not do.",
        "libcublas",
    ),
    KnownError(
        r"libcudnn",
        "Something asks for cuDNN, which whisperfleet does not need.",
        "Put back the packages that it was tested with: `make clean`, then `make run`.",
        "libcudnn",
    ),
    KnownError(
        r"CUDA.{0,20} out of memory|cudaErrorMemoryAllocation|CUBLAS_STATUS_(ALLOC_FAILED|NOT_INITIALIZED)",
        "The GPU's memory is full.",
        "End what else is on it (`nvidia-smi`), or set WHISPER_COMPUTE_TYPE=int8_float16, a smaller "
        "WHISPER_BATCH_SIZE or a smaller WHISPER_MODEL.",
        "gpu-out-of-memory",
    ),
    KnownError(
        r"no kernel image is available|cudaErrorNoKernelImageForDevice",
        "CTranslate2's wheel has no code for a GPU this old.",
        "Leave it out (WHISPER_GPUS), set WHISPER_DEVICE=cpu, or build CTranslate2 for it.",
        "no-kernel-image",
    ),
    KnownError(
        r"PTX was compiled with an unsupported toolchain|cudaErrorUnsupportedPtxVersion",
        "The GPU is newer than CTranslate2's ready-made code, and the driver too old to compile it.",
        "Update the NVIDIA driver.",
        "ptx-toolchain",
    ),
    KnownError(
        r"driver version is insufficient|driver is too old|driver too old",
        "The NVIDIA driver is older than CUDA 12 needs, or, in a container, not there.",
        "Update it to 525 or newer and reboot; in a container, give it the GPUs (`--gpus all`).",
        "driver-too-old",
    ),
    KnownError(
        r"Requested \w+ compute type, but the target device|Invalid compute type|"
        r"WHISPER_COMPUTE_TYPE=\S+: device",
        "The device cannot compute with numbers of this type.",
        "Leave WHISPER_COMPUTE_TYPE unset, or choose one that `whisperfleet doctor` lists for the device.",
        "compute-type",
    ),
    KnownError(
        r"CUBLAS_STATUS_NOT_SUPPORTED",
        "This GPU and this version of CTranslate2 do not compute with 8-bit integers together.",
        "Set WHISPER_COMPUTE_TYPE=float16.",
        "cublas-not-supported",
    ),
    KnownError(
        r"Driver/library version mismatch|NVML/RM version mismatch|nvml\w* version mismatch",
        "The driver was updated while its old kernel module stayed loaded.",
        "Reboot.",
        "nvml-version-mismatch",
    ),
    KnownError(
        r"could not select device driver",
        "Docker does not know how to hand over an NVIDIA GPU.",
        "Install the NVIDIA container toolkit on the host, `sudo nvidia-ctk runtime configure "
        "--runtime=docker`, `sudo systemctl restart docker`.",
        "container-toolkit",
    ),
    KnownError(
        r"NVML: Unknown Error",
        "The container has lost its GPUs, which happens when systemd reloads its units on the host.",
        "Start the container anew.",
        "container-lost-gpus",
    ),
    KnownError(
        r"NVML Shared Library Not Found|Driver Not Loaded|there is no NVIDIA GPU|couldn't communicate with "
        r"the NVIDIA driver",
        "No NVIDIA driver can be reached.",
        "See whether `nvidia-smi` works; in a container, give it the GPUs (`--gpus all`); without a GPU, set "
        "WHISPER_DEVICE=cpu.",
        "no-gpu",
    ),
    KnownError(
        r"no CUDA-capable device is detected|invalid device ordinal|there is no GPU \d+|shows? no GPU",
        "The worker was given a GPU, or a part of one, that CUDA does not find.",
        "Compare WHISPER_GPUS and CUDA_VISIBLE_DEVICES with what `nvidia-smi -L` lists; with MIG on, name "
        "its instances (MIG-…).",
        "wrong-gpu-names",
    ),
    KnownError(
        r"busy or unavailable|cudaErrorDevicesUnavailable",
        "The GPU is kept by another process (compute mode exclusive), or is being reset.",
        "End that process, or `sudo nvidia-smi -c DEFAULT`; and no GPU twice in WHISPER_GPUS.",
        "gpu-busy",
    ),
    KnownError(
        r"unspecified launch failure|illegal memory access|uncorrectable ECC|GPU is lost|fallen off the bus",
        "The GPU, or its driver, failed at work.",
        "Look for `NVRM: Xid` in `sudo dmesg`; reboot, and update the driver if it comes back.",
        "gpu-failed",
    ),
    KnownError(
        r"BrokenProcessPool|process pool was terminated abruptly|process \S+ (died|crashed)|"
        r"processes crashed on it",
        "A child process was killed or crashed: most often the machine's memory was full.",
        "Look for `Out of memory` in `sudo dmesg`; fewer workers, a smaller model, or more memory for the "
        "container.",
        "process-died",
    ),
    KnownError(
        r"did not answer within",
        "A child process hung and was ended.",
        "A very slow disk or a first load on a new GPU may be the reason; otherwise look for `NVRM: Xid` in "
        "`sudo dmesg`, or raise WHISPER_BATCH_TIMEOUT_S on a slow machine.",
        "process-hung",
    ),
    KnownError(
        r"bad_alloc|failed to allocate memory|Cannot allocate memory|MemoryError",
        "The machine's memory is full.",
        "Fewer workers (WHISPER_CPU_WORKERS, WHISPER_GPUS) or a smaller WHISPER_MODEL.",
        "process-died",
    ),
    KnownError(
        r"model\.bin is incomplete|invalid payload size|Unable to open file|Unsupported model|"
        r"Cannot load the vocabulary",
        "The model's files are damaged, incomplete, or not in CTranslate2 format.",
        "Delete its folder from the cache and start again, or convert it with ct2-transformers-converter.",
        "model-damaged",
    ),
    KnownError(
        r"cannot be downloaded|LocalEntryNotFound|outgoing traffic has been disabled",
        "The model is not on this machine, and cannot be fetched.",
        "Connect, or copy the model here and set WHISPER_MODEL to its folder; WHISPER_MODEL=demo to try the "
        "service.",
        "model-not-downloadable",
    ),
    KnownError(
        r"is over this service's limit|recording is longer than|413 (Content|Request Entity|Payload) Too "
        r"Large",
        "The upload is larger, or the recording longer, than this service takes.",
        "Raise WHISPER_MAX_UPLOAD_MB or WHISPER_MAX_DURATION_S, and the limit of any proxy in front.",
        "413-too-large",
    ),
    KnownError(
        r"queue is full|429 Too Many Requests",
        "More work is waiting than this service accepts.",
        "Ask again after the seconds that `Retry-After` says.",
        "429-queue-full",
    ),
    KnownError(
        r"is being (loaded|looked up)|service is starting|no (worker|media process) could|503 Service "
        r"Unavailable",
        "No worker can take the request yet.",
        "`/ready` says why; ask again after the seconds that `Retry-After` says.",
        "503-not-ready",
    ),
    KnownError(
        r"disk is full|No space left on device|Disk quota exceeded",
        "The disk with the data folder is full.",
        "Make room, or set WHISPER_DATA_DIR to a folder on a larger disk.",
        "507-disk-full",
    ),
    KnownError(
        r"address already in use",
        "Another program listens on this port.",
        "End it (`ss -ltnp` names it), or set WHISPER_PORT.",
        "port-in-use",
    ),
    KnownError(
        r"another whisperfleet uses this folder",
        "A folder belongs to one process.",
        "Stop the other one, or set WHISPER_DATA_DIR.",
        "data-folder-in-use",
    ),
    KnownError(
        r"another whisperfleet uses this database|database does not answer|WHISPER_DATABASE_URL=",
        "The database of the jobs cannot be used.",
        "See that it runs and that WHISPER_DATABASE_URL names it; one service per database.",
        "database",
    ),
    KnownError(
        r"recording is gone from the service's data folder",
        "The file of an accepted job was removed by something else.",
        "Hand the recording in again; let nothing else clear WHISPER_DATA_DIR.",
        "recording-gone",
    ),
)


def diagnose(message: str) -> KnownError | None:
    """What a message means; None for one that is not known."""
    return next((row for row in KNOWN_ERRORS if re.search(row.pattern, message, re.IGNORECASE)), None)


def explain(error: BaseException | str) -> str:
    """An error's message in one line, with what to do about it where that is known."""
    message = last_line(error)
    trouble = diagnose(message)
    return f"{message}. {trouble.advice}" if trouble else message


def last_line(error: BaseException | str) -> str:
    """The one line of an error, or of a traceback, that says what went wrong.

    The name of an exception that says nothing beside it is dropped.
    """
    text = error if isinstance(error, str) else str(error) or repr(error)
    lines = [line.strip() for line in text.splitlines() if line.strip(' \t"')]
    line = lines[-1] if lines else text
    return re.sub(r"^(RuntimeError|ValueError|OSError|ImportError): ", "", line).rstrip(".")
