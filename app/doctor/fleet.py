"""The child processes, set up and started as the service does it."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from app.doctor.finding import Finding, fail, failed_with, ok, warn
from app.engines.catalogue import ModelCatalogue
from app.engines.clip_request import ClipInMemory
from app.engines.model_files import DEMO, DEMO_PATH, ModelFiles
from app.engines.plan import Plan
from app.engines.slot import WhisperSlot
from app.media.pool import MediaPool
from app.media.uploads import Upload
from app.scheduling.process import ChildProcess
from workers import probe
from workers.messages import BYTES_PER_SAMPLE, FRAME_SAMPLES, SAMPLE_RATE, Clip, Decoding

SAMPLE = DEMO_PATH / "sample.flac"
SAMPLE_TEXT = "The captain reads a long letter."
_SPEECH_PROBABILITY = 0.5
_DEADLINE_S = 120.0  # for an answer that takes seconds, even from a cold disk
_MISSING_PYTHON_PACKAGES = "Install whisperfleet again: `make clean`, then `make run`."

T = TypeVar("T")


async def start_method() -> str | BaseException:
    """What a child says of the way it was started, or why it says nothing."""
    child = ChildProcess(probe.initialise, "")
    try:
        await child.start()
        return await child.call(probe.start_method, deadline_s=_DEADLINE_S)
    except Exception as error:
        return error
    finally:
        await child.close()


async def libraries(plan: Plan) -> AsyncGenerator[Finding]:
    """Whether the models' libraries work on each device, and with the compute type that is asked for."""
    distinct = dict.fromkeys(plan.devices.visible if plan.devices.device == "cuda" else [""])
    checks = [_libraries_on(visible, plan) for visible in distinct]
    async with aclosing(_as_they_end(checks)) as ended:
        async for findings in ended:
            for finding in findings:
                yield finding


async def detect_speech(folder: Path) -> tuple[list[Finding], bytes]:
    """Decode the sample and look for speech in it, in a media child; what was found, and the samples.

    They are s16le, mono, 16 kHz; empty where they could not be had. `folder` is where the child writes.
    """
    media = MediaPool(1)
    media.start()
    try:
        return await _detect_speech_in(media, folder / "sample.pcm")
    finally:
        await media.stop()


async def transcribe(plan: Plan, model: ModelFiles, pcm: bytes) -> AsyncGenerator[Finding]:
    """Have each worker of the plan load a model and transcribe the sample, all of them at once."""
    # Never in this very process: it could not be ended, and CUDA would stay in it.
    plan = replace(plan, engine="local") if plan.engine == "inline" else plan
    catalogue = ModelCatalogue(model.name, idle_s=0.0, options={model.name: plan.load_options(model)})
    slots = plan.slots(catalogue)
    clip = Clip(pcm, ((0, len(pcm) // BYTES_PER_SAMPLE),), Decoding(model.name))
    try:
        async with aclosing(_as_they_end([_transcribe_on(slot, clip) for slot in slots])) as ended:
            async for finding in ended:
                yield finding
    finally:
        # Only now: as in the service, all models are to be in memory at once.
        await asyncio.gather(*(slot.close() for slot in slots))


async def _libraries_on(visible: str, plan: Plan) -> list[Finding]:
    device = plan.devices.device
    name = f"GPU {visible}" if device == "cuda" else "CPU"
    child = ChildProcess(probe.initialise, visible)
    try:
        await child.start()
        findings = []
        if device == "cuda":
            findings.append(
                await _found(f"cuBLAS on {name}", child.call(probe.find_cublas, deadline_s=_DEADLINE_S))
            )
        findings.append(await _ctranslate2(f"CTranslate2 on {name}", child, plan, visible))
        return findings
    except Exception as error:
        return [failed_with(f"process for {name}", error)]
    finally:
        await child.close()


async def _found(title: str, call: Awaitable[str]) -> Finding:
    try:
        return ok(title, await call)
    except Exception as error:
        return failed_with(title, error)


async def _ctranslate2(title: str, child: ChildProcess, plan: Plan, visible: str) -> Finding:
    device, wanted = plan.devices.device, plan.compute_type
    try:
        count = await child.call(probe.count_cuda_devices, deadline_s=_DEADLINE_S)
        if device == "cuda" and not count:
            cure = "Compare with what `nvidia-smi -L` lists; with MIG on, name its instances (MIG-…)."
            return fail(title, f"CUDA_VISIBLE_DEVICES={visible} shows no GPU", cure, "wrong-gpu-names")
        types = await child.call(probe.supported_compute_types, device, deadline_s=_DEADLINE_S)
    except ImportError as error:
        return fail(title, f"cannot be imported: {error}", _MISSING_PYTHON_PACKAGES)
    except Exception as error:
        return failed_with(title, error)
    listed = ", ".join(sorted(types))
    if wanted not in ("auto", "default") and wanted not in types:
        cure = "Leave WHISPER_COMPUTE_TYPE unset, or choose one of these."
        finding = fail(title, f"WHISPER_COMPUTE_TYPE={wanted}; there are {listed}", cure, "compute-type")
        return replace(finding, senseless=True)
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
        return [failed_with(decoder, error)], b""
    samples = len(pcm) // BYTES_PER_SAMPLE
    decoded = ok(decoder, f"{samples / SAMPLE_RATE:.1f} s of FLAC decoded by PyAV")
    try:
        frames = -(-samples // FRAME_SAMPLES)
        probabilities = await media.speech_probabilities("doctor", pcm_path, 0, frames)
    except Exception as error:
        return [decoded, failed_with(detector, error)], pcm
    heard_s = int(np.count_nonzero(probabilities > _SPEECH_PROBABILITY)) * FRAME_SAMPLES / SAMPLE_RATE
    if not heard_s:
        return [decoded, fail(detector, "silero-vad hears no speech", _MISSING_PYTHON_PACKAGES)], pcm
    return [decoded, ok(detector, f"silero-vad hears {heard_s:.1f} s of speech")], pcm


async def _transcribe_on(slot: WhisperSlot, clip: Clip) -> Finding:
    title = f"worker {slot.index}"
    try:
        started = time.perf_counter()
        await slot.start()
        loaded = time.perf_counter()
        [result] = await slot.run([ClipInMemory(clip)])
        done = time.perf_counter()
    except Exception as error:
        return failed_with(title, error)
    row = slot.row()
    text = "".join(segment.text for segment in result.segments).strip()
    found = (
        f"{row['device']} {row['visible_devices']}, {row['compute_type']}: loaded {row['model']} in "
        f"{loaded - started:.1f} s, transcribed in {done - loaded:.1f} s: {text!r}"
    )
    if row["model"] == DEMO and text != SAMPLE_TEXT:
        cure = f"It says {SAMPLE_TEXT!r}: this device miscalculates. Try another WHISPER_COMPUTE_TYPE."
        return fail(title, found, cure, "wrong-transcripts")
    if row["error"]:
        return warn(title, found, str(row["error"]))
    return ok(title, found)


async def _as_they_end(works: Sequence[Coroutine[Any, Any, T]]) -> AsyncGenerator[T]:
    """The results of several works at once, the first one done first. None outlives the generator."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        for task in asyncio.as_completed(tasks):
            yield await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
