"""What `bench/gpu_session.py` measures of the backend in torch. Needs no package but torch and numpy."""

import json
import random
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from bench.model_sizes import SHAPES, Dimensions
from bench.sized_model import make_model
from workers.messages import BYTES_PER_SAMPLE, SAMPLE_RATE, LoadOptions
from workers.whisper.backend import (
    FRAMES_PER_SECOND,
    Alignment,
    Generated,
    Search,
    SpecialTokens,
    TextToAlign,
    WhisperBackend,
)

Pcm = npt.NDArray[np.int16]  # 16 kHz
Found = dict[str, Any]  # the figures of a part, by what they are
Result = tuple[Generated, Alignment | Exception | None]  # of a window

TURBO, LARGE = "large-v3-turbo", "large-v3"
WINDOW_S, DRAFT_S, DRAFT_CONTEXT_S = 29, 9, 10
CONTEXTS_S = {"timed": 30, "distinct": 30, "draft": DRAFT_CONTEXT_S}
DISTINCT = 16  # windows, each from a later place of the talk
USUAL = Search(5)


@dataclass(frozen=True)
class Session:
    """Where a session runs, and how much it measures."""

    device: str  # "cuda" or "cpu"
    small: bool  # only to check that all of it runs
    carried: Path
    models: Path  # folder for those that are made here

    @property
    def batch(self) -> int:
        return 2 if self.small else 16

    @property
    def repeat(self) -> int:
        """Runs of which the median counts."""
        return 1 if self.small else 5

    @property
    def kinds(self) -> dict[str, int]:
        """The windows that are decoded, and the encoder's context for them (s)."""
        return {"draft": DRAFT_CONTEXT_S} if self.small else CONTEXTS_S

    @property
    def timed(self) -> str:
        """Of these, those whose time is measured."""
        return "draft" if self.small else "timed"

    @property
    def compute_type(self) -> str:
        return "float16" if self.device == "cuda" else "float32"

    def shape(self, size: str) -> Dimensions:
        return small_shape(size) if self.small else SHAPES[size]

    @cached_property
    def prepared(self) -> dict[str, Any]:
        """See `expectations`."""
        found: dict[str, Any] = json.loads((self.carried / "prepared.json").read_text())
        return found

    def pcm(self, name: str) -> Pcm:
        """The samples of a recording."""
        pcm: Pcm = np.load(self.carried / "sounds.npz")[name]
        return pcm

    def windows(self, kind: str) -> list[bytes]:
        """Windows of the talk, as int16."""
        return windows_of(self.pcm("talk"), kind)

    def options(self, size: str, batch: int, **others: Any) -> LoadOptions:
        threads = 1 if self.small else 8
        path = str(self.models / size)
        return LoadOptions("model", path, self.device, self.compute_type, threads, batch_size=batch, **others)


def small_shape(size: str) -> Dimensions:
    """A small model with a tokenizer and spectrograms as one of a size has them."""
    return replace(SHAPES[size], width=384, heads=6, encoder_layers=5, decoder_layers=3)


def windows_of(talk: Pcm, kind: str) -> list[bytes]:
    """`timed`: those of `bench/gpu.py`. `distinct`: of as many places. `draft`: short ones."""
    length = DRAFT_S if kind == "draft" else WINDOW_S
    last = len(talk) / SAMPLE_RATE - length
    starts = np.linspace(0, last, DISTINCT) if kind == "distinct" else range(0, int(last) + 1, length)
    samples = length * SAMPLE_RATE
    return [
        talk[round(start * SAMPLE_RATE) :][:samples].astype("<i2").tobytes()
        for start in list(starts)[:DISTINCT]
    ]


def decode(
    backend: WhisperBackend,
    windows: Sequence[bytes],
    start: tuple[int, ...],
    search: Search = USUAL,
    context_s: int = 30,
) -> list[Result]:
    """The texts of a batch and the times of their tokens, as `LoadedModel` asks for them."""
    encoded = backend.encode(windows, context_s)
    generated = backend.generate(encoded, [start] * len(windows), search)
    return list(zip(generated, backend.align(encoded, to_align(windows, start, generated)), strict=True))


def to_align(
    windows: Sequence[bytes], start: tuple[int, ...], generated: Sequence[Generated]
) -> list[TextToAlign | None]:
    per_frame = SAMPLE_RATE // FRAMES_PER_SECOND * BYTES_PER_SAMPLE
    spoken = [tuple(token for token in text.tokens if token < start[0] - 1) for text in generated]
    return [
        TextToAlign(start, tokens, len(window) // per_frame) if tokens else None
        for tokens, window in zip(spoken, windows, strict=True)
    ]


def expectations(folder: Path, *, small: bool) -> dict[str, Any]:
    """The tokens of a model with these dimensions, and what it gives in CTranslate2, in float32 on a CPU.

    Models of any size have its texts and times. Needs the service's packages. `folder` has its sounds.
    """
    from workers.whisper.model import LoadedModel, _special_tokens

    with TemporaryDirectory() as models:
        session = Session("cpu", small, folder, Path(models))
        make_model(small_shape(TURBO), session.models / TURBO, sound=session.pcm("sample"))
        model = LoadedModel(session.options(TURBO, 1), "float32")
        tokenizer = model._tokenizer("en", "transcribe")
        start, backend = tuple(tokenizer.sot_sequence), model.network
        results = {
            kind: [
                (text.tokens, aligned.starts if isinstance(aligned, Alignment) else ())
                for text, aligned in decode(
                    backend, session.windows(kind)[: session.batch], start, context_s=context_s
                )
            ]
            for kind, context_s in session.kinds.items()
        }
        return {"tokens": asdict(_special_tokens(model._hf_tokenizer)), "start": start, "results": results}


class Models:
    """Parts that write the models. They compute on the CPU."""

    def __init__(self, session: Session, _: ExitStack) -> None:
        self._session = session

    def parts(self) -> dict[str, Callable[[], Found]]:
        return {TURBO: lambda: self.make(TURBO), LARGE: lambda: self.make(LARGE)}

    def make(self, size: str) -> Found:
        began = time.perf_counter()
        make_model(self._session.shape(size), self._session.models / size, sound=self._session.pcm("sample"))
        return {"made s": time.perf_counter() - began}


class Decoding:
    """The parts for a model of one size."""

    def __init__(self, session: Session, size: str) -> None:
        self._session, self._size = session, size
        self._opened: Any = None
        known = session.prepared
        self.start = tuple(known["start"])
        self.tokens = SpecialTokens(**known["tokens"] | {"suppressed": tuple(known["tokens"]["suppressed"])})
        self.batch = list(islice(cycle(session.windows(session.timed)), session.batch))
        self._windows = session.windows("draft" if session.small else "distinct")[: session.batch]
        self.context_s = CONTEXTS_S[session.timed]
        self._seconds = len(self.batch[0]) / BYTES_PER_SAMPLE / SAMPLE_RATE  # of each

    def parts(self) -> dict[str, Callable[[], Found]]:
        """What is measured, in order."""
        parts = {"load": self.load, "texts": self.texts, "speed": self.speed}
        if self._size == TURBO:
            parts |= {"stages": self.stages, "graphs": self.graphs, "drafts": self.drafts}
            parts |= {"bytes": self.bytes}
        if self._session.device == "cuda":
            parts |= {"memory": self.memory}
        return parts | ({"batches": self.batches} if self._size == TURBO else {})

    @property
    def _backend(self) -> Any:
        if self._opened is None:
            self._opened = self._open(self._session.batch)
        return self._opened

    def _open(self, batch: int) -> Any:
        from workers.whisper.torch.torch_backend import TorchBackend

        options = self._session.options(self._size, batch, backend="torch")
        return TorchBackend(options, self._session.compute_type, self.tokens)

    def _decode(self, windows: Sequence[bytes], **how: Any) -> list[Result]:
        return decode(self._backend, windows, self.start, **{"context_s": self.context_s} | how)

    def _time(self, work: Callable[[], object]) -> float:
        """The median time (s), after a run that is not measured."""
        times = []
        for _ in range(self._session.repeat + (not self._session.small)):
            self._wait()
            began = time.perf_counter()
            work()
            self._wait()
            times.append(time.perf_counter() - began)
        return statistics.median(times[-self._session.repeat :])

    def _wait(self) -> None:
        import torch

        if self._session.device == "cuda":
            torch.cuda.synchronize()

    def load(self) -> Found:
        """From the import of torch to the first batch; the file is still in memory."""
        began = time.perf_counter()
        import torch  # noqa: F401

        imported = time.perf_counter()
        self._opened = self._open(self._session.batch)
        loaded = time.perf_counter()
        self._decode(self.batch)
        done = time.perf_counter()
        return {
            "import s": imported - began,
            "load s": loaded - imported,
            "first batch s": done - loaded,
            "all s": done - began,
            "windows at once": self._backend.batch_size,
        }

    def texts(self) -> Found:
        """How many texts are the demo model's, and how far their tokens' times are from its own."""
        found: Found = {}
        for kind, context_s in self._session.kinds.items():
            windows = self._session.windows(kind)[: self._session.batch]
            found |= self.compared(self._decode(windows, context_s=context_s), kind)
        return found

    def compared(self, results: Sequence[Result], kind: str) -> Found:
        """The results of windows, which may be there several times, against those that were prepared."""
        right, off = 0, [0]
        expected = cycle(self._session.prepared["results"][kind])
        for (text, aligned), (tokens, starts) in zip(results, expected, strict=False):
            if text.tokens == tuple(tokens):
                right += 1
                begins = aligned.starts if isinstance(aligned, Alignment) else ()
                off += [abs(one - other) for one, other in zip(begins, starts, strict=True)]
        return {
            f"{kind}: texts right": f"{right} of {len(results)}",
            f"{kind}: times off by more than 20 ms, %": 100 * sum(x > 1 for x in off) / len(off),
            f"{kind}: most, s": max(off) / FRAMES_PER_SECOND,
        }

    def speed(self) -> Found:
        """A batch alone, and batches one after another."""
        seconds = self._seconds * len(self.batch)
        alone = self._time(lambda: self._decode(self.batch))
        stream = self._stream_s(2 if self._session.small else 8)
        found = {"batch s": alone, "in a stream s": stream, "x real time": seconds / stream}
        if self._size == TURBO:
            found["beam 1 s"] = self._time(lambda: self._decode(self.batch, search=Search(1)))
        return found | {"tokens": max(len(text.tokens) for text, _ in self._decode(self.batch))}

    def _stream_s(self, batches: int) -> float:
        """The time of each of several batches."""
        self._wait()
        began = time.perf_counter()
        for _ in range(batches):
            self._decode(self.batch)
        return (time.perf_counter() - began) / batches

    def stages(self) -> Found:
        """Time and kernels of each stage, and the kernels that take longest."""
        backend, start, windows = self._backend, self.start, self.batch
        encoded = backend.encode(windows, self.context_s)
        prompts = [start] * len(windows)
        generated = backend.generate(encoded, prompts, USUAL)
        texts = to_align(windows, start, generated)
        places = backend._decoder(USUAL.beams, 8, encoded.frames)
        begin = (prompts, [0] * len(windows), [0] * len(windows), USUAL)
        stages: dict[str, Callable[[], object]] = {
            "encode": lambda: backend.encode(windows, self.context_s),
            "prefill": lambda: _inferring(lambda: places.begin(*begin)),
            "prefill and steps": lambda: backend.generate(encoded, prompts, USUAL),
            "align": lambda: backend.align(encoded, texts),
            "all": lambda: self._decode(windows),
        }
        found: Found = {}
        for name, work in stages.items():
            wall = self._time(work)
            kernels = self._kernels(work)
            busy = sum(kernels.values())
            found |= {f"{name} s": wall, f"{name}: kernels s": busy}
        found |= {"kernels' share": busy / wall, "host s": wall - busy}
        longest = sorted(kernels.items(), key=lambda kernel: -kernel[1])[:10]
        return found | {f"kernel {name[:70]} s": seconds for name, seconds in longest}

    def _kernels(self, work: Callable[[], object]) -> dict[str, float]:
        """The time of each kernel (s), by name; on a CPU, of each operation."""
        from torch.profiler import ProfilerActivity, profile

        on_gpu = self._session.device == "cuda"
        kind = "self_device_time_total" if on_gpu else "self_cpu_time_total"
        with profile(activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]) as profiled:
            work()
            self._wait()
        return {
            event.key: getattr(event, kind) / 1e6
            for event in profiled.key_averages()
            if (event.device_type.name == "CUDA") == on_gpu  # without the calls that launch kernels
        }

    def graphs(self) -> Found:
        """Steps that are replayed against the same ones without a record; their times with the prefill."""
        windows, backend = self._windows, self._backend
        encoded = backend.encode(windows, self.context_s)
        prompts = [self.start] * len(windows)
        replayed, steps = self._searched(encoded, prompts)
        replayed_s = self._time(lambda: backend.generate(encoded, prompts, USUAL))
        backend.recorder.replays = False
        try:
            plain, _ = self._searched(encoded, prompts)
            plain_s = self._time(lambda: backend.generate(encoded, prompts, USUAL))
        finally:
            backend.recorder.replays = True
        pairs = list(zip(replayed, plain, strict=True))
        return {
            "records": len(backend.recorder._graphs),
            "steps": steps,
            "replayed, each step ms": 1000 * replayed_s / steps,
            "without, each step ms": 1000 * plain_s / steps,
            "texts equal": f"{sum(one.tokens == other.tokens for one, other in pairs)} of {len(pairs)}",
            "scores differ by": max(abs(one.score - other.score) for one, other in pairs),
        }

    def _searched(self, encoded: Any, prompts: Sequence[tuple[int, ...]]) -> tuple[list[Generated], int]:
        """The texts, and how many steps they took."""
        from workers.whisper.torch.decoder import Decoder

        with patch.object(Decoder, "step", autospec=True, side_effect=Decoder.step) as step:
            return self._backend.generate(encoded, prompts, USUAL), step.call_count

    def drafts(self) -> Found:
        """Drafts of two windows alone, and beside batches: the next one waits while a draft does."""
        windows = self._session.windows("draft")[:2]

        def draft(search: Search = USUAL) -> None:
            self._decode(windows, search=search, context_s=DRAFT_CONTEXT_S)

        found = {"alone s": self._time(draft), "alone, beam 1 s": self._time(lambda: draft(Search(1)))}
        batch = self.batch
        came: list[float] = []
        ended = threading.Event()

        def speak() -> None:
            chance = random.Random(0)
            for _ in range(2 if self._session.small else 20):
                if ended.wait(chance.uniform(0.05, 0.5)):
                    return
                came.append(time.perf_counter())
            ended.set()

        delays: list[float] = []
        speaker = threading.Thread(target=speak)
        speaker.start()
        try:
            while not ended.is_set() or came:
                if came:
                    began = came.pop(0)
                    draft()
                    self._wait()
                    delays.append(time.perf_counter() - began)
                else:
                    self._decode(batch)
        finally:
            ended.set()
            speaker.join()
        return found | {"beside batches s": statistics.median(delays), "most s": max(delays)}

    def bytes(self) -> Found:
        """Results of windows at each place of a full batch and alone, against those at the first place."""
        windows, batch = self._windows, len(self._windows)
        usual = self._decode(windows)
        moved = {"tokens": 0, "scores": 0, "times": 0}
        alone = dict(moved)
        for places in range(1, batch):
            again = self._decode([*windows[-places:], *windows[:-places]])
            for one, other in zip(usual, [*again[places:], *again[:places]], strict=True):
                _note(moved, one, other)
        for window, one in zip(windows, usual, strict=True):
            _note(alone, one, self._decode([window])[0])
        return {"results": batch * (batch - 1), "of those alone": batch} | {
            f"{where}: other {what}": count
            for where, counts in (("moved", moved), ("alone", alone))
            for what, count in counts.items()
        }

    def memory(self) -> Found:
        """What the model and its batches took, and what the formula says."""
        import torch

        from workers.whisper.torch.torch_backend import batch_bytes

        backend = self._backend
        self._decode(self.batch)
        network = backend._network
        unique = {weight.data_ptr(): weight for weight in network._weights.values()}.values()
        weights = sum(weight.numel() * weight.element_size() for weight in unique)
        free, total = torch.cuda.mem_get_info()
        figures = {
            "weights": weights,
            "formula": batch_bytes(network, backend.batch_size, len(backend._alignment_heads)),
            "batches": torch.cuda.max_memory_allocated() - weights,
            "kept by torch": torch.cuda.memory_reserved(),
            "of the GPU": total - free,
        }
        return {f"{name} MB": value / 1e6 for name, value in figures.items()}

    def batches(self) -> Found:
        """Other sizes of batches, each in a backend of its own."""
        found: Found = {}
        for size in (1, 2) if self._session.small else (8, 32):
            self._backend.close()
            self._opened = self._open(size)
            windows = list(islice(cycle(self.batch), size))
            took = self._time(lambda windows=windows: self._decode(windows))  # type: ignore[misc]
            found |= {f"{size} s": took, f"{size}, x real time": self._seconds * size / took}
        return found


def _note(counts: dict[str, int], one: Result, other: Result) -> None:
    (text, aligned), (other_text, other_aligned) = one, other
    counts["tokens"] += text.tokens != other_text.tokens
    counts["scores"] += (text.score, text.no_speech_prob) != (other_text.score, other_text.no_speech_prob)
    counts["times"] += aligned != other_aligned


def _inferring(work: Callable[[], object]) -> None:
    import torch

    with torch.inference_mode():
        work()
