"""What a model takes on the disk and in memory, computed from its dimensions.

    python -m bench.model_sizes [--memory tiny base small --batch 4 --threads 1]

Without options: the table of docs/models.md. `--memory` measures models of these sizes on this machine's
CPU instead: a process loads each with `int8` and with `float32`, and decodes one batch of full windows with
word times.
"""

import argparse
import multiprocessing
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from bench.measuring import markdown
from workers.messages import DecodingOptions, LoadOptions

POSITIONS, FRAMES = 448, 1500  # of the decoder, and of the encoder for 30 s
MB = 10**6
BEAMS, TOKENS = 5, 200  # of each window: rarely more
CUDA_MB = 800  # context, cuBLAS, and what CTranslate2's allocator keeps


@dataclass(frozen=True, slots=True)
class Dimensions:
    """A model's dimensions, as its `config.json` on Hugging Face has them."""

    width: int
    heads: int
    encoder_layers: int
    decoder_layers: int
    mel_bins: int = 80
    vocabulary: int = 51_865
    alignment_heads: tuple[tuple[int, int], ...] = ()  # layer and head; empty: not needed here

    @property
    def cantonese(self) -> bool:
        """Whether the vocabulary has this additional language, as from large-v3 on."""
        return self.vocabulary > 51_865

    @property
    def parameters(self) -> int:
        """The number of weights, as CTranslate2 stores them: the embedding once, with both positions."""
        width = self.width
        attention = 4 * width * width + 3 * width
        feed_forward = 8 * width * width + 5 * width
        norm = 2 * width
        convolutions = (self.mel_bins + width) * width * 3 + 2 * width
        encoder_layer = attention + feed_forward + 2 * norm
        decoder_layer = 2 * attention + feed_forward + 3 * norm
        encoder = convolutions + FRAMES * width + self.encoder_layers * encoder_layer + norm
        embeddings = (self.vocabulary + POSITIONS) * width
        return encoder + embeddings + self.decoder_layers * decoder_layer + norm

    def working_mb(self, batch: int, bytes_each: int) -> float:
        """The most that a batch of full windows takes beside the weights (MB).

        Either the encoder's attention, or the keys and values of the decoder: for the encoder's frames, and
        for all tokens of all beams.
        """
        attention = batch * self.heads * FRAMES**2 * bytes_each
        pairs = 2 * self.width * self.decoder_layers * bytes_each
        return max(attention, batch * (FRAMES + BEAMS * TOKENS) * pairs) / MB

    def gpu_mb(self, weight_bytes: int, batch: int = 8) -> float:
        """The memory on a GPU (MB), with activations of two bytes."""
        return self.parameters * weight_bytes / MB + self.working_mb(batch, 2) + CUDA_MB


_SMALL, _MEDIUM, _LARGE = (768, 12, 12), (1024, 16, 24), (1280, 20, 32)
_OLD, _NEW = (80, 51_865), (128, 51_866)  # from large-v3 on: finer spectrograms, one more language
_SMALL_HEADS = ((5, 3), (5, 9), (8, 0), (8, 4), (8, 7), (8, 8), (9, 0), (9, 7), (9, 9), (10, 5))
_LARGE_HEADS = ((7, 0), (10, 17), (12, 18), (13, 12), (16, 1), (17, 14), (19, 11), (21, 4), (24, 1), (25, 6))
DIMENSIONS = {
    "tiny": Dimensions(384, 6, 4, 4, *_OLD, ((2, 2), (3, 0), (3, 2), (3, 3), (3, 4), (3, 5))),
    "base": Dimensions(
        *(512, 8, 6, 6), *_OLD, ((3, 1), (4, 2), (4, 3), (4, 7), (5, 1), (5, 2), (5, 4), (5, 6))
    ),
    "small": Dimensions(*_SMALL, 12, *_OLD, _SMALL_HEADS),
    "medium": Dimensions(*_MEDIUM, 24),
    "large-v1": Dimensions(*_LARGE, 32, *_OLD),
    "large-v2": Dimensions(*_LARGE, 32, *_OLD),
    "large-v3": Dimensions(*_LARGE, 32, *_NEW, _LARGE_HEADS),
    "large-v3-turbo": Dimensions(*_LARGE, 4, *_NEW, ((2, 4), (2, 11), (3, 3), (3, 6), (3, 11), (3, 14))),
    "distil-small.en": Dimensions(*_SMALL, 4),
    "distil-medium.en": Dimensions(*_MEDIUM, 2),
    "distil-large-v2": Dimensions(*_LARGE, 2, *_OLD),
    "distil-large-v3": Dimensions(*_LARGE, 2, *_NEW),
    "distil-large-v3.5": Dimensions(*_LARGE, 2, *_NEW),
}
# Of which `bench/sized_model.py` can make a model.
SHAPES = {name: model for name, model in DIMENSIONS.items() if model.alignment_heads}


def dimensions_of(name: str) -> Dimensions:
    """The dimensions of a model that `WHISPER_MODEL` knows by this name."""
    same = {"large": "large-v3", "turbo": "large-v3-turbo"}.get(name, name)
    return DIMENSIONS.get(same) or DIMENSIONS[same.removesuffix(".en")]


def models_table() -> Iterator[str]:
    """The lines of the table in docs/models.md: a row for each repository."""
    from app.engines.model_files import REPOSITORIES, abilities_of  # `bench/gpu_session.py` does without

    titles = ["name", "repository", "disk", "GPU, `float16`", "GPU, `int8_float16`", "translates"]
    names: dict[str, list[str]] = {}
    for name, repository in REPOSITORIES.items():
        names.setdefault(repository, []).append(name)
    rows = []
    for repository, same in names.items():
        model = dimensions_of(same[0])
        sizes = [2 * model.parameters / MB, model.gpu_mb(2), model.gpu_mb(1)]
        translates = "yes" if abilities_of(same[0], None).translates else "no"
        rows.append([", ".join(f"`{name}`" for name in same), repository, *map(_amount, sizes), translates])
    return markdown(titles, rows)


def _amount(megabytes: float) -> str:
    return f"{megabytes / 1000:.1f} GB" if megabytes >= 995 else f"{megabytes:.0f} MB"


def measure(name: str, compute_type: str, batch: int, threads: int) -> tuple[float, float]:
    """Resident memory (MB) of a process with a model of that size: loaded, and its peak in a batch."""
    from bench.sized_model import make_model  # it imports this module

    with tempfile.TemporaryDirectory() as folder:
        make_model(SHAPES[name], Path(folder))
        spawn = multiprocessing.get_context("spawn")
        with spawn.Pool(1) as pool:
            return pool.apply(_load_and_decode, (name, folder, compute_type, batch, threads))


def _load_and_decode(
    name: str, folder: str, compute_type: str, batch: int, threads: int
) -> tuple[float, float]:
    from bench.gpu import speech
    from bench.recordings import TALK, read
    from workers.whisper.worker import open_model

    loaded = open_model(LoadOptions(name, folder, "cpu", compute_type, threads))
    at_rest = _memory_mb("VmRSS")
    decoding = DecodingOptions(name, language="en", word_timestamps=True, beam_size=BEAMS)
    windows = list(islice(cycle(speech(read(TALK), decoding)), batch))
    results = loaded.decode(windows)
    assert all(result.segments for result in results)
    return at_rest, _memory_mb("VmHWM")


def _memory_mb(field: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    [line] = [line for line in lines if line.startswith(f"{field}:")]
    return int(line.split()[1]) * 1024 / MB


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, or measured figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--memory", nargs="+", choices=list(SHAPES), default=[], metavar="NAME")
    parser.add_argument("--types", nargs="+", default=["int8", "float32"], metavar="TYPE")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args(arguments)
    if not chosen.memory:
        print("\n".join(models_table()))
    for name in chosen.memory:
        for compute_type in chosen.types:
            at_rest, peak = measure(name, compute_type, chosen.batch, chosen.threads)
            print(f"{name} {compute_type}: {at_rest:.0f} MB loaded, {peak:.0f} MB at its peak")


if __name__ == "__main__":
    main()
