"""Runs `whisperfleet` with real worker processes that have no model, and replayed recordings.

    python bench/stub_service.py serve --port 8000        (in the root of a checkout)

For bench/server_costs.py. This file imports nothing of bench, and little of the service, so the checkout may
be of any age. BENCH_STUB has the settings, as JSON: `slots`, `speed` (times real time, of each), `replay` (a
folder with pcm.raw and probabilities.raw, which each recording turns out to contain), `polite` (whether media
workers have a low priority, as usual: on a busy machine they starve), `report` (where bench/cpu_parts.py
writes).

Each slot believes that it has a GPU. Spawned processes import this file, too: there it takes the places of
the model and of the decoder.
"""

import json
import os
import random
import runpy
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

STUB = json.loads(os.environ["BENCH_STUB"])
LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "sv", "da")
LANGUAGE_PROBS = tuple((name, 0.97 if name == "en" else 0.003) for name in LANGUAGES)
WORDS_PER_S = 2.663  # of a window: those of the talk of the tests
SEGMENT_S = 5  # least length of a segment, if there is speech for it
RATE = 16_000


class StubModel:
    """Answers after as long as a device of the given speed would take, with words of the talk."""

    backend, compute_type = "ctranslate2", "float16"
    batch_size = note = None
    languages = LANGUAGES

    def __init__(self, options: Any, compute_type: str = "") -> None:
        cues = json.loads((Path(__file__).parents[1] / "tests" / "data" / "talk.json").read_text())["cues"]
        self._words = " ".join(cue["text"] for cue in cues).split()

    # Older checkouts call one of these, and give `decode` the answer; some also whether a batch is urgent.
    def prepare(self, windows: Sequence[Any]) -> None: ...

    features = prepare

    def decode(self, windows: Sequence[Any], prepared: None = None, urgent: bool = False) -> list[Any]:
        time.sleep(sum(window.samples for window in windows) / RATE / STUB["speed"])
        return [self._result(window) for window in windows]

    def close(self) -> None: ...

    def _result(self, window: Any) -> Any:
        from workers.messages import WindowResult

        drawn = random.Random(str((window.samples, window.speech)))
        return WindowResult(
            language="en",
            language_probs=() if window.decoding.language else LANGUAGE_PROBS,
            segments=tuple(self._segments(window, drawn)),
            tail=None,
            token_count=80,
            avg_logprob=-0.25 - drawn.random() / 10,
            no_speech_prob=drawn.random() / 100,
            compression_ratio=1.5 + drawn.random() / 10,
        )

    def _segments(self, window: Any, drawn: random.Random) -> Iterator[Any]:
        from workers.messages import Segment, Word

        spans = _joined(window.speech)
        spoken = sum(end - start for start, end in spans)
        place = drawn.randrange(len(self._words))
        left = round(window.samples / RATE * WORDS_PER_S)
        for start, end in spans:
            count = max(1, round(left * (end - start) / spoken))
            left, spoken = left - count, spoken - (end - start)
            texts = [self._words[(place + number) % len(self._words)] for number in range(count)]
            place += count
            edges = [start + (end - start) * number // count for number in range(count + 1)]
            yield Segment(
                start=start,
                end=end,
                text="".join(f" {text}" for text in texts),
                tokens=tuple(drawn.randrange(50_000) for _ in range(round(1.3 * count))),
                temperature=0.0,
                avg_logprob=-0.25 - drawn.random() / 10,
                compression_ratio=1.5 + drawn.random() / 10,
                no_speech_prob=drawn.random() / 100,
                words=tuple(
                    Word(f" {text}", begin, stop, round(drawn.uniform(0.3, 1), 8))
                    for text, (begin, stop) in zip(texts, pairwise(edges), strict=True)
                )
                if window.decoding.word_timestamps
                else (),
            )


def _joined(speech: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of speech, joined until each is long enough for a segment."""
    joined: list[tuple[int, int]] = []
    for start, end in speech:
        if joined and joined[-1][1] - joined[-1][0] < SEGMENT_S * RATE:
            start, _ = joined.pop()
        joined.append((start, end))
    return joined


def replayed_pcm(source: Path, findings: Any, *_: Any, **__: Any) -> Iterator[bytes]:
    """In the place of `decoded_pcm`."""
    with (Path(STUB["replay"]) / "pcm.raw").open("rb") as file:
        findings.declared_s = os.fstat(file.fileno()).st_size / 2 / RATE
        yield b""
        while chunk := file.read(1 << 20):
            yield chunk


def replayed_probabilities(pcm_path: str, start_frame: int, frames: int) -> bytes:
    """In the place of `speech_probabilities`."""
    with (Path(STUB["replay"]) / "probabilities.raw").open("rb") as file:
        file.seek(4 * start_frame)
        return file.read(4 * frames)


def replace_model_and_decoder() -> None:
    """In a spawned process, before it is given work."""
    from workers.media import tasks
    from workers.whisper import worker

    worker.open_model = worker.LoadedModel = StubModel  # the one of this checkout, and that of older ones
    worker.supported_compute_types = lambda device: {"float16", "float32"}
    tasks.decoded_pcm = replayed_pcm  # type: ignore[assignment]
    tasks.speech_probabilities = replayed_probabilities
    if not STUB.get("polite"):
        os.nice = lambda increment: 0


def serve() -> None:
    """Run the command line, with a GPU for each slot."""
    from app.engines import devices, plan

    gpus = tuple(devices.PresentGpu(f"GPU-{number}") for number in range(STUB["slots"]))
    plan.list_gpus = lambda: gpus
    parts = runpy.run_path(str(Path(__file__).with_name("cpu_parts.py")))["CpuParts"]
    parts(Path(STUB["report"])).install()
    from app.cli import cli

    cli()  # not `main`, which lets no spawned process import this file


if __name__ == "__mp_main__":
    replace_model_and_decoder()
if __name__ == "__main__":
    sys.path[0] = str(Path.cwd())
    serve()
