"""The Whisper worker: what its process is asked to do, and the models that it holds."""

import gc
import logging
import os
import threading
from collections.abc import Sequence

from workers import calls
from workers.messages import AnyWindow, LoadOptions, Window, WindowResult, WorkerInfo
from workers.runtime import keep_freed_memory, preload_cublas, release_freed_memory
from workers.whisper.compute_types import choose, smaller
from workers.whisper.model import LoadedModel

_CTRANSLATE2_DECIDES = ("auto", "default")

log = logging.getLogger(__name__)

_loads = 0
_models: dict[str, LoadedModel] = {}  # by the model's name
_queuing = threading.Lock()
# Of the last batch that is urgent, and of the last one that is not: set once it is decoded.
_last = {False: threading.Event(), True: threading.Event()}
for _none in _last.values():
    _none.set()
Answer = WindowResult | OSError  # to a window; the error if its audio cannot be read


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


def decode(windows: Sequence[AnyWindow], urgent: bool = False) -> list[Answer]:
    """Decode a batch of windows, of any jobs and languages. The answers are in the windows' order.

    All windows must have the same `batch_key`. One batch that is `urgent` is decoded at a time, and beside it
    one that is not, which lets it pass; the next ones have their features computed meanwhile. Raises
    RuntimeError if the model is not loaded.
    """
    decoded = threading.Event()
    with _queuing:
        before, _last[urgent] = _last[urgent], decoded
    try:
        model = _model_of(windows)
        batch = read(windows)
        readable = [window for window in batch if isinstance(window, Window)]
        features = model.features(readable)
        before.wait()
        results = model.decode(readable, features, urgent)
    finally:
        before.wait()
        decoded.set()
    log.debug("decoded %d windows: %d tokens", len(readable), sum(result.token_count for result in results))
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
