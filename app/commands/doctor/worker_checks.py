"""Checks of the child processes, which start with the service's own code."""

import asyncio
import time
from collections.abc import Awaitable, Coroutine, Iterable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from app.commands.doctor.finding import Finding, ReportFinding, fail, fail_with, ok, warn
from app.engines.backend_choice import TORCH
from app.engines.catalogue import ModelCatalogue
from app.engines.model_files import DEMO, DEMO_PATH, ModelFiles
from app.engines.plan import Plan
from app.engines.slot import WhisperSlot
from app.engines.window_request import WindowRequest
from app.intake.disk import DiskSpace
from app.intake.uploads import Upload
from app.media.pool import MediaPool
from app.pool.process import ChildProcess
from workers import probe
from workers.messages import BYTES_PER_SAMPLE, FRAME_SAMPLES, SAMPLE_RATE, DecodingOptions

SAMPLE = DEMO_PATH / "sample.flac"
SAMPLE_TEXT = "The captain reads a long letter."
_SPEECH_PROBABILITY = 0.5
_DEADLINE_S = 120.0  # for answers that take seconds, even from a cold disk
_REINSTALL = "Install whisperfleet again: `make clean`, then `make run`."


async def child_start_method() -> str | BaseException:
    """The start method that a child reports, or the error if it does not answer."""
    child = ChildProcess(probe.initialise, "")
    try:
        await child.start()
        return await child.call(probe.start_method, deadline_s=_DEADLINE_S)
    except Exception as error:
        return error
    finally:
        await child.close()


async def check_libraries(plan: Plan, report: ReportFinding) -> None:
    """Whether cuBLAS and CTranslate2 work on each device, with the compute type of the settings.

    Torch has its own libraries, and its types everywhere: workers show whether it works.
    """
    if plan.backend == TORCH:
        return
    distinct = dict.fromkeys(plan.devices.visible if plan.devices.device == "cuda" else [""])
    await report_each([_check_libraries_on(visible, plan) for visible in distinct], report)


async def detect_speech(folder: Path) -> tuple[list[Finding], bytes]:
    """Decode the sample and detect speech in a media worker. Returns the findings and the samples.

    Samples are s16le, mono, 16 kHz; empty if decoding failed. The worker writes to `folder`.
    """
    media = MediaPool(1, DiskSpace(folder))
    media.start()
    try:
        return await _detect_speech_in(media, folder / "sample.pcm")
    finally:
        await media.stop()


async def transcribe(plan: Plan, model: ModelFiles, pcm: bytes, report: ReportFinding) -> None:
    """Let all workers of the plan load a model and transcribe the sample at the same time."""
    # Not in this process: it could not be killed, and CUDA would stay loaded in it.
    plan = replace(plan, engine="local") if plan.engine == "inline" else plan
    catalogue = ModelCatalogue(model.name, idle_s=0.0, options={model.name: plan.load_options(model)})
    slots = plan.slots(catalogue)
    window = sample_window(model.name, pcm)
    try:
        await report_each([transcribe_on(slot, window, f"worker {slot.index}") for slot in slots], report)
    finally:
        # Not earlier: all models must be in memory at once, as in the service.
        await asyncio.gather(*(slot.close() for slot in slots))


def sample_window(model: str, pcm: bytes) -> WindowRequest:
    """All samples (s16le, mono, 16 kHz) as one window for a model."""
    samples = len(pcm) // BYTES_PER_SAMPLE
    return WindowRequest(pcm, 0, samples, ((0, samples),), DecodingOptions(model))


async def _check_libraries_on(visible: str, plan: Plan) -> list[Finding]:
    device = plan.devices.device
    name = f"GPU {visible}" if device == "cuda" else "CPU"
    child = ChildProcess(probe.initialise, visible)
    try:
        await child.start()
        findings = []
        if device == "cuda":
            findings.append(
                await _finding_of(f"cuBLAS on {name}", child.call(probe.find_cublas, deadline_s=_DEADLINE_S))
            )
        findings.append(await _check_ctranslate2(f"CTranslate2 on {name}", child, plan, visible))
        return findings
    except Exception as error:
        return [fail_with(f"process for {name}", error)]
    finally:
        await child.close()


async def _finding_of(title: str, call: Awaitable[str]) -> Finding:
    try:
        return ok(title, await call)
    except Exception as error:
        return fail_with(title, error)


async def _check_ctranslate2(title: str, child: ChildProcess, plan: Plan, visible: str) -> Finding:
    device, compute_type = plan.devices.device, plan.compute_type
    try:
        count = await child.call(probe.count_cuda_devices, deadline_s=_DEADLINE_S)
        if device == "cuda" and not count:
            remedy = (
                "Compare it with the list of `nvidia-smi -L`. With MIG enabled, name the instances (MIG-…)."
            )
            return fail(title, f"CUDA_VISIBLE_DEVICES={visible} shows no GPU", remedy, "wrong-gpu-names")
        types = await child.call(probe.supported_compute_types, device, deadline_s=_DEADLINE_S)
    except ImportError as error:
        return fail(title, f"cannot be imported: {error}", _REINSTALL)
    except Exception as error:
        return fail_with(title, error)
    listed = ", ".join(sorted(types))
    if compute_type not in ("auto", "default") and compute_type not in types:
        remedy = "Leave WHISPER_COMPUTE_TYPE unset, or choose one of these types."
        finding = fail(
            title, f"WHISPER_COMPUTE_TYPE={compute_type}; the device has {listed}", remedy, "compute-type"
        )
        return replace(finding, invalid_setting=True)
    return ok(title, f"compute types {listed}")


async def _detect_speech_in(media: MediaPool, pcm_path: Path) -> tuple[list[Finding], bytes]:
    decoder, detector = "audio decoder", "speech detector"
    sample = Upload(SAMPLE, SAMPLE.name, SAMPLE.stat().st_size, sha256="")
    try:
        async with aclosing(media.decode("doctor", sample, pcm_path)) as steps:
            async for _ in steps:
                pass
        pcm = await asyncio.to_thread(pcm_path.read_bytes)
    except Exception as error:
        return [fail_with(decoder, error)], b""
    samples = len(pcm) // BYTES_PER_SAMPLE
    decoded = ok(decoder, f"{samples / SAMPLE_RATE:.1f} s of FLAC decoded by PyAV")
    try:
        frames = -(-samples // FRAME_SAMPLES)
        probabilities = await media.speech_probabilities("doctor", pcm_path, 0, frames)
    except Exception as error:
        return [decoded, fail_with(detector, error)], pcm
    speech_s = int(np.count_nonzero(probabilities > _SPEECH_PROBABILITY)) * FRAME_SAMPLES / SAMPLE_RATE
    if not speech_s:
        return [decoded, fail(detector, "silero-vad finds no speech", _REINSTALL)], pcm
    return [decoded, ok(detector, f"silero-vad finds {speech_s:.1f} s of speech")], pcm


async def transcribe_on(slot: WhisperSlot, window: WindowRequest, title: str) -> list[Finding]:
    """Start a slot's worker and let it transcribe the sample. Does not close the slot."""
    try:
        started = time.perf_counter()
        await slot.start()
        loaded = time.perf_counter()
        [result] = await slot.run([window])
        assert not isinstance(result, OSError)  # no audio is read
        done = time.perf_counter()
    except Exception as error:
        return [fail_with(title, error)]
    row = slot.row()
    text = "".join(segment.text for segment in result.segments).strip()
    found = (
        f"{row['device']} {row['visible_devices']}, {row['compute_type']}, {row['backend']}: loaded "
        f"{row['model']} in {loaded - started:.1f} s, transcribed in {done - loaded:.1f} s: {text!r}"
    )
    if row["model"] == DEMO and text != SAMPLE_TEXT:
        remedy = (
            f"The sample says {SAMPLE_TEXT!r}: this device miscalculates. Try another WHISPER_COMPUTE_TYPE."
        )
        return [fail(title, found, remedy, "wrong-transcripts")]
    if row["error"]:
        return [warn(title, found, str(row["error"]))]
    if slot.notes:
        return [warn(title, found, "; ".join(slot.notes))]
    return [ok(title, found)]


async def report_each(checks: Iterable[Coroutine[Any, Any, list[Finding]]], report: ReportFinding) -> None:
    """Run checks at the same time, and report the findings of each when it has ended."""

    async def run(check: Coroutine[Any, Any, list[Finding]]) -> None:
        for finding in await check:
            report(finding)

    async with asyncio.TaskGroup() as group:
        for check in checks:
            group.create_task(run(check))
