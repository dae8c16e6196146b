"""The Whisper worker: what its process is asked to do, and the models that it holds."""

import gc
import logging
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from workers import calls
from workers.messages import DecodingOptions, LoadOptions, Window, WindowResult, WorkerInfo
from workers.runtime import keep_freed_memory, preload_cublas, release_freed_memory
from workers.whisper.compute_types import TORCH_TYPES, choose, smaller

if TYPE_CHECKING:
    from workers.whisper.model import LoadedModel

_CTRANSLATE2_DECIDES = ("auto", "default")

log = logging.getLogger(__name__)

_loads = 0
_models: "dict[str, LoadedModel]" = {}  # by the model's name
Answer = WindowResult | OSError  # to a window; the error if its audio cannot be read


def supported_compute_types(device: str, backend: str = "ctranslate2") -> set[str]:
    """The compute types that a backend offers on `device` ("cuda": on the first visible GPU)."""
    if backend == "torch":
        return set(TORCH_TYPES[device])
    _prepare(device, backend)
    import ctranslate2

    return set(ctranslate2.get_supported_compute_types(device))


def load(options: LoadOptions) -> WorkerInfo:
    """Load a model into this process.

    Raises the errors of its backend, RuntimeError if the model's files do not fit together, and BackendUnfit
    if torch does not pass its test on a GPU.
    """
    global _loads
    _prepare(options.device, options.backend)
    with calls.measured("load model"):
        loaded = _models[options.model] = open_model(options)
    _loads += 1
    log.info(
        "loaded the model %s (%s, %s, %s)", options.model, options.device, loaded.backend, loaded.compute_type
    )
    return WorkerInfo(
        pid=os.getpid(),
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        model=options.model,
        device=options.device,
        compute_type=loaded.compute_type,
        backend=loaded.backend,
        batch_size=loaded.batch_size,
        loads=_loads,
        languages=loaded.languages,
        note=loaded.note,
    )


def open_model(options: LoadOptions) -> "LoadedModel":
    """A model that is loaded now. Raises as `load` does."""
    from workers.whisper.model import LoadedModel

    compute_type = _compute_type(options)
    model = LoadedModel(options, compute_type)
    if options.backend == "torch" and options.device == "cuda":
        from workers.whisper.torch.self_test import self_test

        self_test(model, options, compute_type)
    return model


def unload(model: str) -> None:
    """Free the memory of a model. Does nothing if it is not loaded."""
    if (loaded := _models.pop(model, None)) is not None:
        loaded.close()
    gc.collect()
    # The next model of this size may come hours later.
    release_freed_memory()


def read(windows: Sequence[Window]) -> list[Window | OSError]:
    """The windows with their audio, each with an error in its place if its audio cannot be read."""
    batch: list[Window | OSError] = []
    for window in windows:
        try:
            batch.append(window.read())
        except OSError as error:
            batch.append(error)
    return batch


def decode(windows: Sequence[Window]) -> list[Answer]:
    """Decode a batch of windows, of any jobs and languages. The answers are in the windows' order.

    All windows must have the same `batch_key`. Raises RuntimeError if the model is not loaded, and the errors
    of its backend.
    """
    name = windows[0].decoding.model
    if name not in _models:
        raise RuntimeError(f"the model {name!r} is not loaded in this worker")
    batch = read(windows)
    readable = [window for window in batch if isinstance(window, Window)]
    results = _models[name].decode(readable)
    log.debug("decoded %d windows: %d tokens", len(readable), sum(result.token_count for result in results))
    return in_place(results, batch)


def probe(model: str) -> None:
    """Decode a bundled sentence with a model that is loaded. Raises as `decode` does."""
    from workers.whisper.sentence import sentence

    decode([sentence(DecodingOptions(model))])


def in_place(results: Sequence[WindowResult], batch: Sequence[Window | OSError]) -> list[Answer]:
    """The results of the windows that could be read, with the errors of the others between them."""
    following = iter(results)
    return [next(following) if isinstance(window, Window) else window for window in batch]


def smaller_compute_type(options: LoadOptions) -> str | None:
    """The compute type with which the model takes less memory; None if the device has none."""
    compute_type = _compute_type(options)
    if compute_type in _CTRANSLATE2_DECIDES:
        loaded = _models.get(options.model)
        # A model that failed to load had the largest type, as far as we know.
        compute_type = loaded.compute_type if loaded else "float32"
    supported = supported_compute_types(options.device, options.backend)
    return smaller(compute_type, options.device, supported)


def _compute_type(options: LoadOptions) -> str:
    if options.backend == "torch" and options.compute_type in ("auto", "default"):
        return TORCH_TYPES[options.device][0]
    supported = supported_compute_types(options.device, options.backend)
    return choose(options.compute_type, options.device, supported, safe=options.safe)


def _prepare(device: str, backend: str) -> None:
    if device == "cpu":
        keep_freed_memory()
    elif backend == "ctranslate2":  # torch brings a cuBLAS of its own
        preload_cublas()
