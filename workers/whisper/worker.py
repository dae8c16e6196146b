"""The Whisper worker: what its process is asked to do, and the models that it holds."""

import gc
import logging
import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workers import calls
from workers.messages import LoadOptions, Window, WindowResult, WorkerInfo
from workers.runtime import keep_freed_memory, preload_cublas, release_freed_memory
from workers.whisper.compute_types import choose, smaller
from workers.whisper.model import LoadedModel

_CTRANSLATE2_DECIDES = ("auto", "default")

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

log = logging.getLogger(__name__)

_loads = 0
_models: dict[str, LoadedModel] = {}  # by the model's name
_decoder: ThreadPoolExecutor | None = None
_ahead: "_Ahead | None" = None  # the batch whose results the next exchange returns


@dataclass(frozen=True, slots=True)
class _Ahead:
    """A batch that a thread decodes, and the call that brought it."""

    results: Future[list[WindowResult]]
    call: calls.Call


def supported_compute_types(device: str) -> set[str]:
    """The compute types that CTranslate2 offers on `device` ("cuda": on the first visible GPU)."""
    _prepare(device)
    import ctranslate2

    return set(ctranslate2.get_supported_compute_types(device))


def load(options: LoadOptions) -> WorkerInfo:
    """Load a model into this process.

    Raises the errors of CTranslate2, and RuntimeError if the model's files do not fit together.
    """
    global _loads
    _prepare(options.device)
    with calls.measured("load model"):
        loaded = _models[options.model] = LoadedModel(options, _compute_type(options))
    _loads += 1
    log.info("loaded the model %s (%s, %s)", options.model, options.device, loaded.compute_type)
    return WorkerInfo(
        pid=os.getpid(),
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        model=options.model,
        device=options.device,
        compute_type=loaded.compute_type,
        loads=_loads,
        languages=loaded.languages,
        note=loaded.note,
    )


def unload(model: str) -> None:
    """Free the memory of a model. Does nothing if it is not loaded."""
    _models.pop(model, None)
    gc.collect()
    # The next model of this size may come hours later.
    release_freed_memory()


def decode(windows: Sequence[Window]) -> list[WindowResult]:
    """Decode a batch of windows, of any jobs and languages. The results are in the windows' order.

    All windows must have the same `batch_key`. Raises RuntimeError if their model is not loaded.
    """
    model = _model_of(windows)
    return _decode(model, windows, model.features(windows))


def exchange(windows: Sequence[Window] | None) -> list[WindowResult] | Exception | None:
    """Take over a batch, and return the results of the batch before; None if there is none.

    The features of the new batch are computed while a thread decodes the batch before, so the device does
    not wait for them. What `decode` would raise for the batch before is returned: the new batch has been
    taken over then, which an error that is raised would not say.
    """
    global _ahead
    before, _ahead = _ahead, None if windows is None else _start_decoding(windows)
    if before is None:
        return None
    try:
        results = before.results.result()
    except Exception as error:
        return error
    calls.current().parts.extend(before.call.parts)
    return results


def _start_decoding(windows: Sequence[Window]) -> _Ahead:
    """Compute the features of a batch, and decode it after the batch before. Does not raise."""
    global _decoder
    _decoder = _decoder or ThreadPoolExecutor(1, "decoder")
    context, call = calls.separate()
    results: Future[list[WindowResult]]
    try:
        model = _model_of(windows)
        features = context.run(model.features, windows)
        results = _decoder.submit(context.run, _decode, model, windows, features)
    except Exception as error:  # of this batch, while the one before is still to be answered
        results = Future()
        results.set_exception(error)
    return _Ahead(results, call)


def _decode(
    model: LoadedModel, windows: Sequence[Window], features: "list[npt.NDArray[np.float32]]"
) -> list[WindowResult]:
    results = model.decode(windows, features)
    log.debug("decoded %d windows: %d tokens", len(windows), sum(result.token_count for result in results))
    return results


def _model_of(windows: Sequence[Window]) -> LoadedModel:
    name = windows[0].decoding.model
    if name not in _models:
        raise RuntimeError(f"the model {name!r} is not loaded in this worker")
    return _models[name]


def smaller_compute_type(options: LoadOptions) -> str | None:
    """The compute type with which the model takes less memory; None if the device has none."""
    compute_type = _compute_type(options)
    if compute_type in _CTRANSLATE2_DECIDES:
        loaded = _models.get(options.model)
        # A model that failed to load had the largest type, as far as we know.
        compute_type = loaded.compute_type if loaded else "float32"
    return smaller(compute_type, options.device, supported_compute_types(options.device))


def _compute_type(options: LoadOptions) -> str:
    supported = supported_compute_types(options.device)
    return choose(options.compute_type, options.device, supported, safe=options.safe)


def _prepare(device: str) -> None:
    if device == "cuda":
        preload_cublas()
    else:
        keep_freed_memory()
