"""What runs on the nodes: an actor that holds a worker's process, and functions that Ray runs as tasks.

An actor is one process of Ray's. It reserves a GPU or a core, and hands calls on to the process that it
spawns. Errors of that are answers: for Ray no call fails but those whose actor is lost.
"""

import asyncio
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from app.common.errors import DeviceFailed, ProcessCrashed
from app.pool.cluster.message_socket import pickled
from app.pool.cluster.ray_messages import ActorSpec
from app.pool.process import ChildProcess
from app.pool.tasks import WorkerProcess
from app.telemetry import logs
from workers import calls, probe
from workers.log_lines import LogFormat

_CHECK_DEADLINE_S = 120.0  # for the libraries of CUDA to load


class WorkerActor:
    """Holds the process of one worker.

    All arguments and answers are pickled: Ray copies bytes as they are, and an error of the process is read
    where it is raised, in the server.
    """

    def __init__(self, spec: ActorSpec, node_name: str, form: LogFormat | None) -> None:
        """`form`: of the log lines of the process, which it writes to the log of the actor."""
        # Child processes would run the file of `__main__` again, as multiprocessing does it: it is Ray's.
        vars(sys.modules["__main__"]).pop("__file__", None)
        logs.child_format = form
        self._spec = spec
        self._node_name = node_name
        self._process: WorkerProcess | None = None
        self._crashes: asyncio.Queue[ProcessCrashed] = asyncio.Queue()

    async def ready(self) -> int:
        """The actor's pid. Answers when the actor has its resources."""
        return os.getpid()

    async def start_process(self, call: bytes) -> bytes:
        """Start the process: its pid. An actor does it once.

        `call`: a pickled initializer of child processes, or a class of `WorkerProcess`, and its arguments.
        """
        return await _answer(self._start(*pickle.loads(call)))

    async def call_process(self, call: bytes) -> bytes:
        """Run a pickled function in the process; with its arguments, deadline and the ids of log lines."""
        return await _answer(self._call(*pickle.loads(call)))

    async def close(self) -> None:
        """End the process, and wait until it has ended."""
        if self._process is not None:
            self._process.on_exit = lambda error: None
            await self._process.close()

    async def next_exit(self) -> ProcessCrashed:
        """Wait until the process has ended by itself: how, and on which node."""
        return await self._crashes.get()

    async def _start(self, initializer: Callable[..., Any], *args: Any) -> int:
        given = [_assigned_gpus()] if self._spec.gpus else []
        process: WorkerProcess
        if isinstance(initializer, type):
            process = initializer(*given, *args)
        else:
            process = ChildProcess(initializer, *given, *args)
        self._process = process
        process.on_exit = self._exited
        await process.start()
        if given:
            await self._check_gpu(process, given[0])
        assert process.pid is not None  # it is started
        return process.pid

    async def _check_gpu(self, process: WorkerProcess, assigned: str) -> None:
        """Raise DeviceFailed if the process does not see its GPU.

        Its model would run on the CPU, and nobody would notice.
        """
        visible = await process.call(_visible_devices, deadline_s=_CHECK_DEADLINE_S)
        count = await process.call(probe.count_cuda_devices, deadline_s=_CHECK_DEADLINE_S)
        if visible != assigned or count < 1:
            raise DeviceFailed(
                f"node {self._node_name}: Ray has assigned GPU {assigned or 'none'}, but CTranslate2 sees "
                f"{count} GPUs with CUDA_VISIBLE_DEVICES={visible}: check `nvidia-smi` and --num-gpus there"
            )

    async def _call(
        self, ids: dict[str, Any], deadline_s: float | None, function: Callable[..., Any], *args: Any
    ) -> tuple[Any, Sequence[Any]]:
        if self._process is None:
            raise ProcessCrashed("the process has not been started")
        context, call = calls.separate()
        context.run(structlog.contextvars.bind_contextvars, **ids)
        running = self._process.call(function, *args, deadline_s=deadline_s)
        return await asyncio.create_task(running, context=context), call.parts

    def _exited(self, error: ProcessCrashed) -> None:
        reason = f"{error.message} on node {self._node_name}"
        self._crashes.put_nowait(ProcessCrashed(reason, exit_status=error.exit_status, fault=error.fault))


def run_task(call: bytes) -> bytes:
    """Run a pickled function with its arguments, as a task of Ray's."""
    return asyncio.run(_answer(_run(*pickle.loads(call))))


async def _run(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


async def _answer(answer: Any) -> bytes:
    """A pickled answer: whether it is a result, and the result or the error."""
    try:
        return b"".join(pickled((True, await answer)))
    except Exception as error:
        sent = calls.readable(error)
        if error.__cause__ is not None:  # it has the traceback of the process, and is not sent
            sent.add_note(str(error.__cause__))
        return b"".join(pickled((False, sent)))


def _assigned_gpus() -> str:
    """The GPUs that Ray has assigned to the actor, as `CUDA_VISIBLE_DEVICES` names them."""
    import ray

    return ",".join(map(str, ray.get_runtime_context().get_accelerator_ids()["GPU"]))


def _visible_devices() -> str:
    return os.environ.get("CUDA_VISIBLE_DEVICES", "")
