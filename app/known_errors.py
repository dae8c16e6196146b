"""Known error messages of CUDA, its driver, the libraries and the service: their meaning and remedy. Pure.

Each row has a section in docs/trouble.md with more detail.
"""

import re
from dataclasses import dataclass

from workers.causes import GPU_FAILED, GPU_MEMORY_FULL, MACHINE_MEMORY_FULL

GUIDE = "docs/trouble.md"


@dataclass(frozen=True, slots=True)
class KnownError:
    """A kind of message, what it means, and what to do about it."""

    pattern: str  # regular expression, searched anywhere in the message, case-insensitive
    meaning: str
    remedy: str
    anchor: str  # of its section in the guide

    @property
    def advice(self) -> str:
        """Meaning, remedy and the link to the guide, in one line."""
        return f"{self.meaning} {self.remedy} ({GUIDE}#{self.anchor})"


# The first row that matches counts, so the more specific patterns come first.
KNOWN_ERRORS = (
    KnownError(
        r"re-initialize CUDA in forked subprocess",
        "A process used CUDA and then forked. CUDA does not work in the forked process.",
        "whisperfleet spawns its workers. Look for other code that forks (gunicorn --preload, "
        "set_start_method('fork')), and start `whisperfleet serve` on its own.",
        "forked-subprocess",
    ),
    KnownError(
        r"CUDA.{0,20} initialization error|cudaErrorInitializationError|CUDA driver initialization failed",
        "CUDA could not be initialised in the worker: it was forked from a process that uses CUDA, or the "
        "driver is not fully loaded.",
        "Check that `nvidia-smi` works and that /dev/nvidia-uvm exists (`sudo nvidia-modprobe -u -c=0`), "
        "then restart.",
        "initialization-error",
    ),
    KnownError(
        r"libcublas(Lt)?\.so\.12|cublas(Lt)?64_12\.dll",
        "cuBLAS 12, the only CUDA library that the models need, is not installed.",
        "Run `.venv/bin/python -m pip install nvidia-cublas-cu12`, or `make run EXTRAS=gpu`. cuBLAS of CUDA "
        "11 or 13 does not work.",
        "libcublas",
    ),
    KnownError(
        r"libcudnn",
        "A library asks for cuDNN, which whisperfleet does not need.",
        "Restore the tested package versions: `make clean`, then `make run`.",
        "libcudnn",
    ),
    KnownError(
        GPU_MEMORY_FULL,
        "The GPU's memory is full.",
        "End the other programs on it (`nvidia-smi`), or set WHISPER_COMPUTE_TYPE=int8_float16, a smaller "
        "WHISPER_BATCH_SIZE or a smaller WHISPER_MODEL.",
        "gpu-out-of-memory",
    ),
    KnownError(
        r"no kernel image is available|cudaErrorNoKernelImageForDevice",
        "CTranslate2's wheel has no code for such an old GPU.",
        "Exclude the GPU (WHISPER_GPUS), set WHISPER_DEVICE=cpu, or build CTranslate2 for it.",
        "no-kernel-image",
    ),
    KnownError(
        r"PTX was compiled with an unsupported toolchain|cudaErrorUnsupportedPtxVersion",
        "The GPU is newer than CTranslate2's compiled code, and the driver is too old to compile it.",
        "Update the NVIDIA driver to 570 or newer.",
        "ptx-toolchain",
    ),
    KnownError(
        r"driver version is insufficient|driver is too old|driver too old",
        "The NVIDIA driver is too old for CUDA 12, or is missing in the container.",
        "Update it to 525 or newer (Hopper and newer: 570) and reboot. In a container, pass the GPUs "
        "(`--gpus all`).",
        "driver-too-old",
    ),
    KnownError(
        r"Requested \w+ compute type, but the target device|Invalid compute type|"
        r"WHISPER_COMPUTE_TYPE=\S+: device",
        "The device does not support this compute type.",
        "Leave WHISPER_COMPUTE_TYPE unset, or choose a type that `whisperfleet doctor` lists for the device.",
        "compute-type",
    ),
    KnownError(
        r"CUBLAS_STATUS_NOT_SUPPORTED",
        "This version of CTranslate2 does not support 8-bit integers on this GPU.",
        "Set WHISPER_COMPUTE_TYPE=float16.",
        "cublas-not-supported",
    ),
    KnownError(
        r"Driver/library version mismatch|NVML/RM version mismatch|nvml\w* version mismatch",
        "The driver was updated, but its old kernel module is still loaded.",
        "Reboot.",
        "nvml-version-mismatch",
    ),
    KnownError(
        r"could not select device driver",
        "Docker cannot pass an NVIDIA GPU to a container.",
        "Install the NVIDIA container toolkit on the host, then run `sudo nvidia-ctk runtime configure "
        "--runtime=docker` and `sudo systemctl restart docker`.",
        "container-toolkit",
    ),
    KnownError(
        r"NVML: Unknown Error",
        "The container has lost its GPUs. This happens when systemd reloads its units on the host.",
        "Restart the container.",
        "container-lost-gpus",
    ),
    KnownError(
        r"NVML Shared Library Not Found|Driver Not Loaded|there is no NVIDIA GPU|couldn't communicate with "
        r"the NVIDIA driver",
        "No NVIDIA driver can be reached.",
        "Check that `nvidia-smi` works. In a container, pass the GPUs (`--gpus all`). Without a GPU, set "
        "WHISPER_DEVICE=cpu.",
        "no-gpu",
    ),
    KnownError(
        r"no CUDA-capable device is detected|invalid device ordinal|there is no GPU \d+|shows? no GPU|"
        r"has MIG enabled but no instances",
        "CUDA does not find the GPU, or the MIG instance, that was given to the worker.",
        "Compare WHISPER_GPUS and CUDA_VISIBLE_DEVICES with the list of `nvidia-smi -L`. With MIG enabled, "
        "name the instances (MIG-…).",
        "wrong-gpu-names",
    ),
    KnownError(
        r"busy or unavailable|cudaErrorDevicesUnavailable",
        "Another process has exclusive use of the GPU (compute mode), or the GPU is being reset.",
        "End that process, or run `sudo nvidia-smi -c DEFAULT`. List no GPU twice in WHISPER_GPUS.",
        "gpu-busy",
    ),
    KnownError(
        GPU_FAILED,
        "The GPU or its driver failed during a computation.",
        "Look for `NVRM: Xid` in `sudo dmesg`. Reboot; if the error comes back, update the driver.",
        "gpu-failed",
    ),
    KnownError(
        r"cannot be killed",
        "A child process does not end when it is killed: it is stuck in a driver or on a dead disk.",
        "Look for `NVRM: Xid` in `sudo dmesg`, then reset the GPU or reboot. The other workers go on.",
        "process-cannot-be-killed",
    ),
    KnownError(
        r"BrokenProcessPool|process pool was terminated abruptly|process \S+ crashed|processes crashed on it",
        "A child process was killed or crashed, most often because the machine's memory was full.",
        "Look for `Out of memory` in `sudo dmesg`. Use fewer workers or a smaller model, or give the "
        "container more memory.",
        "process-crashed",
    ),
    KnownError(
        r"process \S+ did not answer within",
        "A child process hung and was killed.",
        "A very slow disk or the first load on a new GPU can be the reason. Otherwise look for `NVRM: Xid` "
        "in `sudo dmesg`, or raise WHISPER_BATCH_TIMEOUT_S on a slow machine.",
        "process-hung",
    ),
    KnownError(
        r"helper process ended",
        "The process that renders and packs long transcripts was killed; the server did its work this time.",
        "Look for `Out of memory` in `sudo dmesg`. Give the machine or the container more memory.",
        "helper-ended",
    ),
    KnownError(
        r"log lines were dropped",
        "The terminal, or the program that reads the log, took no more lines.",
        "Press Ctrl-Q in the terminal, or check the log collector.",
        "log-lines-dropped",
    ),
    KnownError(
        f"{MACHINE_MEMORY_FULL}|MemoryError",
        "The machine's memory is full.",
        "Use fewer workers (WHISPER_CPU_WORKERS, WHISPER_GPUS) or a smaller WHISPER_MODEL.",
        "process-crashed",
    ),
    KnownError(
        r"files do not fit together|folder has no tokenizer\.json",
        "The model's folder holds files of different models, or not all files.",
        "Copy tokenizer.json and preprocessor_config.json from the model that was converted, or convert it "
        "again: ct2-transformers-converter --copy_files tokenizer.json preprocessor_config.json.",
        "model-files-do-not-fit",
    ),
    KnownError(
        r"no word times: |'alignment_heads'",
        "The model gives no times of words, so subtitles are cut by the times of its segments.",
        "Correct alignment_heads in its config.json, or convert it again from a model whose "
        "generation_config.json names them. Another WHISPER_MODEL has them.",
        "no-word-times",
    ),
    KnownError(
        r"model\.bin is incomplete|tokenizer\.json is damaged|invalid payload size|Unable to open file|"
        r"Unsupported model|Cannot load the vocabulary",
        "The model's files are damaged, incomplete, or not in CTranslate2 format.",
        "Delete its folder from the cache and restart, or convert it with ct2-transformers-converter.",
        "model-damaged",
    ),
    KnownError(
        r"model .{1,300} does not fit on the disk",
        "The disk of Hugging Face's cache is too small for the model.",
        "Free space, or set HF_HOME to a folder on a larger disk. The download goes on where it stopped.",
        "model-does-not-fit-on-the-disk",
    ),
    KnownError(
        r"needs a login \(40[13]\)",
        "The model's repository on Hugging Face is gated or private.",
        "Accept its terms on its page, and set HF_TOKEN to a token of that account.",
        "model-needs-a-login",
    ),
    KnownError(
        r"cannot be downloaded|LocalEntryNotFound|outgoing traffic has been disabled",
        "The model is not on this machine and cannot be downloaded.",
        "Connect to the network, or copy the model here and set WHISPER_MODEL to its folder. To try the "
        "service without a model, set WHISPER_MODEL=demo.",
        "model-not-downloadable",
    ),
    KnownError(
        r"You didn't provide an API key|Incorrect API key provided",
        "The service has keys (WHISPER_API_KEYS), and the request has none of them.",
        "Send one of them: `Authorization: Bearer KEY`.",
        "401-key-missing-or-wrong",
    ),
    KnownError(
        r"is over this service's limit|recording is longer than|413 (Content|Request Entity|Payload) Too "
        r"Large",
        "The upload is larger, or the recording longer, than the limit.",
        "Raise WHISPER_MAX_UPLOAD_MB or WHISPER_MAX_DURATION_S, and the limit of any proxy in front.",
        "413-too-large",
    ),
    KnownError(
        r"Ray is not installed",
        "The engine `ray` needs the extra `ray`.",
        "Install it with `make install EXTRAS=ray`, or leave WHISPER_ENGINE out.",
        "ray-not-installed",
    ),
    KnownError(
        r"is left out: |its versions differ|its files of the model|is not on this node: share it",
        "A node has other versions or other model files than the service, or lacks the model.",
        "Install the same version of whisperfleet there, and the same model. The other nodes go on.",
        "node-left-out",
    ),
    KnownError(
        r"refuses the token of this|no token for the Ray cluster|cluster at \S+ asks for no token|"
        r"InvalidAuthToken|no authentication token was found",
        "Machines of the cluster have different tokens, or none.",
        "Put the same token into ~/.ray/auth_token on all of them, and start them with RAY_AUTH_MODE=token.",
        "cluster-token-refused",
    ),
    KnownError(
        r"install the same versions of Python and Ray|Version mismatch: The cluster was started",
        "This machine has another Python or another Ray than the head.",
        "Install whisperfleet on all machines with the same Python and the same constraints.txt.",
        "other-versions-of-ray",
    ),
    KnownError(
        r"this machine is no node of the Ray cluster",
        "Ray connects programs only through a node on their own machine.",
        "Run `ray start --address=… --num-cpus=0 --num-gpus=0` where the service runs.",
        "no-node-on-this-machine",
    ),
    KnownError(
        r"no node of the Ray cluster has a place|no node has a place for a worker|nodes of the Ray cluster "
        r"are drained",
        "The cluster has no node that may have workers.",
        "Start nodes with GPUs, or with CPUs and WHISPER_DEVICE=cpu. Jobs wait meanwhile.",
        "no-place-for-a-worker",
    ),
    KnownError(
        r"has not given a worker",
        "Other programs have the GPUs or CPUs of the node.",
        "`GET /v1/workers` shows the workers of this service. End the other programs, or name the GPUs that "
        "are free in CUDA_VISIBLE_DEVICES of `ray start`.",
        "node-without-a-free-gpu",
    ),
    KnownError(
        r"no Ray cluster answers at|head of the Ray cluster has not answered|Ray cluster at \S+ does not "
        r"answer|Ray cluster at \S+ cannot be used",
        "The head of the cluster does not run, or cannot be reached.",
        "Start it, or open port 6379 of its machine to the other machines. Jobs wait meanwhile.",
        "cluster-away",
    ),
    KnownError(
        r"ObjectStoreFullError|OutOfDiskError",
        "The memory that Ray has for objects on a machine is full, and so is its disk.",
        "Free space in /tmp/ray there, and raise --object-store-memory of `ray start`, in containers with "
        "the size of /dev/shm.",
        "object-store-full",
    ),
    KnownError(
        r"(Actor(Died|Unavailable)|NodeDied|WorkerCrashed|ObjectLost|OwnerDied|TaskUnschedulable\w*|"
        r"ActorUnschedulable)Error|bridge to Ray (has ended|did not answer|failed)|"
        r"node (\S+ )?did not answer within|actor of this process has ended",
        "A worker was lost with its node, or with the connection to it. Its clips are transcribed again.",
        "If its node does not come back, see whether that machine and `ray start` run.",
        "worker-lost",
    ),
    KnownError(
        r"cluster has no node with|This service has no nodes|nodes have the name",
        "The service has no such node.",
        "`GET /v1/nodes` lists the nodes of its Ray cluster. With other engines there are none.",
        "404-no-such-node",
    ),
    KnownError(
        r"has no character '|holds times up to 24 hours|cannot hold as many subtitles",
        "The format cannot hold the transcript: a character, times after 24 hours, or so many subtitles.",
        "Ask for srt, vtt or ttml instead. The transcript is not lost.",
        "400-unsuitable-format",
    ),
    KnownError(
        r"The model .{0,300} cannot translate",
        "Turbo models transcribe, and cannot translate.",
        "Set WHISPER_MODELS=large-v3, and name it in requests: `-F model=large-v3`.",
        "400-cannot-translate",
    ),
    KnownError(
        r"yt-dlp is missing",
        "Jobs may name URLs only if yt-dlp is installed.",
        "Run `.venv/bin/python -m pip install yt-dlp`, or `make run EXTRAS=url`.",
        "400-urls-not-available",
    ),
    KnownError(
        r"transcript has changed|which version of the transcript|412 Precondition Failed|428 Precondition",
        "The correction is not of the newest revision of the transcript, or does not say of which one it is.",
        "Get the segments again, correct those, and send their ETag as `If-Match`.",
        "412-or-428-transcript-changed",
    ),
    KnownError(
        r"queue is full|as many as (this service takes|one API key may have)|429 Too Many Requests",
        "The queue, the uploads or the event streams have reached their limit.",
        "Retry after the number of seconds in `Retry-After`, or raise the setting that the message names.",
        "429-queue-full",
    ),
    KnownError(
        r"is being (loaded|looked up)|service is starting|no (worker|media process) could|503 Service "
        r"Unavailable",
        "No worker is ready yet.",
        "`/ready` gives the reason. Retry after the number of seconds in `Retry-After`.",
        "503-not-ready",
    ),
    KnownError(
        r"does not answer under the host name|421 Misdirected Request",
        "The service has no keys and does not know this host name, which could be that of any web page.",
        "Add the name to WHISPER_ALLOWED_HOSTS, use the IP address, or set WHISPER_API_KEYS.",
        "421-host-not-allowed",
    ),
    KnownError(
        r"upload is not complete|Upload-Offset is|request for this upload|upload has (expired|been used)|"
        r"version 1\.0\.0 of tus",
        "The request does not fit the state of the resumable upload.",
        "Ask for Upload-Offset (HEAD) and go on from there. After 24 h, or for another job, upload the file "
        "again.",
        "resumable-upload-refused",
    ),
    KnownError(
        r"may not send this request",
        "A web page of another site sent the request.",
        "If it may do so, add its origin to WHISPER_CORS_ORIGINS. A proxy must pass on the Host header.",
        "403-origin-not-allowed",
    ),
    KnownError(
        r"This link (is not valid|has expired)",
        "A link to a job's audio or result works for 12 hours, for that path and query alone.",
        "Ask for a new one with `POST /v1/jobs/{id}/links`, and pass it on without any change.",
        "403-link-refused",
    ),
    KnownError(
        r"disk is full|No space left on device|Disk quota exceeded",
        "The disk of the data folder is full.",
        "Free some space, or set WHISPER_DATA_DIR to a folder on a larger disk.",
        "507-disk-full",
    ),
    KnownError(
        r"address already in use|port \d+ is in use|port is already allocated",
        "Another program listens on this port.",
        "Stop it (`ss -ltnp` names it), or set WHISPER_PORT.",
        "port-in-use",
    ),
    KnownError(
        r"another whisperfleet uses this folder",
        "Only one process can use a data folder.",
        "Stop the other process, or set WHISPER_DATA_DIR.",
        "data-folder-in-use",
    ),
    KnownError(
        r"another whisperfleet uses this database|database does not answer|WHISPER_DATABASE_URL=",
        "The database of the jobs cannot be used.",
        "Check that it runs and that WHISPER_DATABASE_URL names it. Only one service can use a database.",
        "database",
    ),
    KnownError(
        r"newer version of whisperfleet has written the database",
        "The database has tables that this version of whisperfleet does not know.",
        "Start the newer version again, or `whisperfleet restore` a backup from before its first start.",
        "newer-database",
    ),
    KnownError(
        r"no backup of whisperfleet|backup is (damaged|incomplete)",
        "The file to restore is no database that `whisperfleet backup` has written, or a damaged one.",
        "Check that the file was copied as a whole, or use an older backup. Nothing was changed.",
        "not-a-backup",
    ),
    KnownError(
        r"lacks FTS5|no such module: fts5",
        "SQLite was built without its full-text search, which the search of jobs needs.",
        "Use a Python whose SQLite has FTS5 (`make run PYTHON=…`), or PostgreSQL.",
        "sqlite-without-fts5",
    ),
    KnownError(
        r"recording is gone from the service's data folder",
        "Another program removed the recording of an accepted job.",
        "Submit the recording again. No other program may delete files in WHISPER_DATA_DIR.",
        "recording-gone",
    ),
)


def diagnose(message: str) -> KnownError | None:
    """The first row that matches a message; None for an unknown message."""
    return next((row for row in KNOWN_ERRORS if re.search(row.pattern, message, re.IGNORECASE)), None)


def explain(error: BaseException | str) -> str:
    """The error's message in one line, followed by the advice if the error is known."""
    message = last_line(error)
    known = diagnose(message)
    if known is None or GUIDE in message:  # it has been explained where it was raised
        return message
    return f"{message}. {known.advice}"


def last_line(error: BaseException | str) -> str:
    """The last line of an error or a traceback, which holds its message.

    Drops the names of common exceptions, which add no information.
    """
    text = error if isinstance(error, str) else str(error) or repr(error)
    lines = [line.strip() for line in text.splitlines() if line.strip(' \t"')]
    line = lines[-1] if lines else text
    return re.sub(r"^(RuntimeError|ValueError|OSError|ImportError): ", "", line).rstrip(".")
