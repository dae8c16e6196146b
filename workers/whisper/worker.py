"""The Whisper worker: what its process is asked to do, and the models that it holds."""

import gc
import logging
import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workers import calls
from workers.messages import AnyWindow, LoadOptions, Window, WindowResult, WorkerInfo
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
Answer = WindowResult | OSError  # to a window; the error if its audio cannot be read

_ahead: "deque[_Ahead]" = deque()  # the batches that are handed over and not answered, in order


@dataclass(frozen=True, slots=True)
class _Ahead:
    """A batch that a thread decodes, and the call that brought it."""

    results: Future[list[Answer]]
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


def read(windows: Sequence[AnyWindow]) -> list[Window | OSError]:
    """The windows with their audio, each with an error in its place if its audio cannot be read."""
    batch: list[Window | OSError] = []
    for window in windows:
        try:
            batch.append(window.read())
        except OSError as error:
            batch.append(error)
    return batch


def decode(windows: Sequence[AnyWindow]) -> list[Answer]:
    """Decode a batch of windows, of any jobs and languages. The answers are in the windows' order.

    All windows must have the same `batch_key`. Raises RuntimeError if their model is not loaded.
    """
    model = _model_of(windows)
    batch = read(windows)
    return _decode(model, batch, _features(model, batch))


def hand_over(windows: Sequence[AnyWindow]) -> None:
    """Take over a batch, compute its features, and have a thread decode it after those before.

    The device does not wait for the features. Each `exchange` returns the results of one batch, in order.
    """
    _ahead.append(_start_decoding(windows))


def exchange(windows: Sequence[AnyWindow] | None) -> list[Answer] | Exception:
    """Take over a batch if one follows, and return the results of the first batch that is not answered.

    What `decode` would raise for that batch is returned: the new one has been taken over then, which an error
    that is raised would not say.
    """
    if windows is not None:
        hand_over(windows)
    before = _ahead.popleft()
    try:
        results = before.results.result()
    except Exception as error:
        return error
    calls.current().parts.extend(before.call.parts)
    return results


def _start_decoding(windows: Sequence[AnyWindow]) -> _Ahead:
    """Read a batch and compute its features, and decode it after those before. Does not raise."""
    global _decoder
    _decoder = _decoder or ThreadPoolExecutor(1, "decoder")
    context, call = calls.separate()
    results: Future[list[Answer]]
    try:
        model = _model_of(windows)
        batch = read(windows)
        features = context.run(_features, model, batch)
        results = _decoder.submit(context.run, _decode, model, batch, features)
    except Exception as error:  # of this batch, while others are still to be answered
        results = Future()
        results.set_exception(error)
    return _Ahead(results, call)


def _features(model: LoadedModel, batch: Sequence[Window | OSError]) -> "list[npt.NDArray[np.float32]]":
    return model.features([window for window in batch if isinstance(window, Window)])


def _decode(
    model: LoadedModel, batch: Sequence[Window | OSError], features: "list[npt.NDArray[np.float32]]"
) -> list[Answer]:
    windows = [window for window in batch if isinstance(window, Window)]
    results = model.decode(windows, features)
    log.debug("decoded %d windows: %d tokens", len(windows), sum(result.token_count for result in results))
    return in_place(results, batch)


def in_place(results: Sequence[WindowResult], batch: Sequence[Window | OSError]) -> list[Answer]:
    """The results of the windows that could be read, with the errors of the others between them."""
    following = iter(results)
    return [next(following) if isinstance(window, Window) else window for window in batch]


def _model_of(windows: Sequence[AnyWindow]) -> LoadedModel:
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
