"""A Whisper model of real size with the transcripts of the demo model, for machines that cannot download one.

    .venv/bin/python bench/sized_model.py large-v3-turbo FOLDER

It loads, encodes, decodes and aligns like the model of that name, in the same time and with the same memory,
but has the demo model's texts and word times: its words are as many, and as long, as speech has them.

Each value of the demo model is there several times ("Net2Net", Chen et al. 2016, widens networks so), and
layer norms see the same mean and variance. What has to be added, heads and whole layers, has random weights
in pairs that cancel each other: a GPU multiplies zeros faster. Where there are 128 mel bins, the demo model's
80 are a linear function of them.

Size on disk in float16: 3.1 GB for large-v3, 1.6 GB for large-v3-turbo. Creating a model needs a little more
memory. It takes neither CTranslate2 nor faster-whisper, which `bench/gpu_session.py` does without.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.model_sizes import SHAPES, Dimensions
from bench.recordings import read
from workers.messages import SAMPLE_RATE
from workers.whisper.model_check import read_number, read_string

Array = npt.NDArray[Any]

DEMO_PATH = Path(__file__).parents[1] / "workers" / "demo_model"
_TYPES = [np.dtype(name) for name in ("f4", "i1", "i2", "i4", "f2")]  # by their number in model.bin
_DEMO_HEADS, _DEMO_LAYERS = 4, {"encoder": 4, "decoder": 2}
_NOISE = 0.02  # standard deviation of the weights that cancel each other
_RANDOM_VALUES = 1 << 23  # the same ones in all layers, each time from another place on


def make_model(
    shape: Dimensions,
    folder: Path,
    seed: int = 0,
    *,
    sound: Array | None = None,
    more: Mapping[str, Array] | None = None,
) -> None:
    """Write a model folder in CTranslate2's format. The shape must be as large as that of `tiny`.

    `sound`: the samples of the demo model's recording, where they cannot be decoded. `more`: weights that no
    other model has.
    """
    vocabulary = _vocabulary(shape)
    copies = _Copies(shape, read_weights(DEMO_PATH / "model.bin"), np.random.default_rng(seed))
    copies.fill_encoder(*_old_mel_bins(shape.mel_bins, sound))
    copies.fill_decoder()
    folder.mkdir(parents=True, exist_ok=True)
    # Whisper's output projection is its embedding, so it is stored once.
    aliases = {"decoder/projection/weight": "decoder/embeddings/weight"}
    write_weights(folder / "model.bin", copies.weights | dict(more or {}), aliases)
    config = _demo("config.json")
    config["suppress_ids_begin"] = [vocabulary.index("<|endoftext|>")]
    config["alignment_heads"] = copies.alignment_heads(config["alignment_heads"])
    preprocessor = _demo("preprocessor_config.json") | {"feature_size": shape.mel_bins}
    generation = _demo("generation_config.json")
    del generation["min_audio_context_s"]  # no real model is known to stand less than all
    for name, content in (
        ("config", config),
        ("vocabulary", vocabulary),
        ("tokenizer", _tokenizer(shape)),
        ("preprocessor_config", preprocessor),
        ("generation_config", generation),
    ):
        (folder / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def _demo(name: str) -> Any:
    return json.loads((DEMO_PATH / name).read_text(encoding="utf-8"))


def read_weights(path: Path) -> dict[str, Array]:
    """The weights and scalars in a `model.bin`, by name. 8-bit values are scaled back.

    The layout is that of `ctranslate2.specs.model_spec.ModelSpec.save`.
    """
    stored: dict[str, Array] = {}
    with path.open("rb") as file:
        # Versions of the file and of the model, and its name between them.
        read_number(file, "I"), read_string(file), read_number(file, "I")
        for _ in range(read_number(file, "I")):
            name = read_string(file)
            shape = [read_number(file, "I") for _ in range(read_number(file, "B"))]
            kind, content = read_number(file, "B"), file.read(read_number(file, "I"))
            stored[name] = np.frombuffer(content, _TYPES[kind]).reshape(shape)
    scales = {name: stored.pop(name) for name in list(stored) if name.endswith("_scale")}
    for name, scale in scales.items():
        weight = name.removesuffix("_scale")
        stored[weight] = stored[weight] / scale.reshape(-1, *[1] * (stored[weight].ndim - 1))
    return stored


def write_weights(path: Path, weights: Mapping[str, Array], aliases: Mapping[str, str]) -> None:
    """Write what `read_weights` reads: a Whisper model. `aliases`: further names of weights."""
    with path.open("wb") as file:

        def number(value: int, size: int = 4) -> None:
            file.write(value.to_bytes(size, "little"))

        def text(value: str) -> None:
            number(len(value) + 1, 2)
            file.write(value.encode() + b"\0")

        number(6), text("WhisperSpec"), number(3), number(len(weights))
        for name, values in weights.items():
            text(name), number(values.ndim, 1)
            for length in values.shape:
                number(length)
            number(_TYPES.index(values.dtype), 1), number(values.nbytes)
            file.write(np.ascontiguousarray(values).data)
        number(len(aliases))
        for names in aliases.items():
            text(names[0]), text(names[1])


class _Copies:
    """Fills a model with copies of the demo model's weights."""

    def __init__(self, shape: Dimensions, demo: Mapping[str, Array], source: np.random.Generator) -> None:
        self._shape = shape
        self._demo = demo
        self._source = source
        self._values = (source.standard_normal(_RANDOM_VALUES, np.float32) * _NOISE).astype("f2")
        self.weights = {name: value for name, value in demo.items() if value.ndim == 0}
        for part in ("encoder", "decoder"):
            self.weights[f"{part}/num_heads"] = np.array(shape.heads, "i2")
        self._times = shape.width // demo["decoder/layer_norm/gamma"].size
        self._heads = shape.heads // _DEMO_HEADS  # copies of each head

    def fill_encoder(self, bins: Array, constant: Array) -> None:
        """`bins`, `constant`: the demo model's mel bins, as `_old_mel_bins` gives them."""
        weight, bias = self._demo["encoder/conv1/weight"], self._demo["encoder/conv1/bias"]
        self._put("encoder/conv1/weight", self._tiled(np.einsum("ock,cm->omk", weight, bins)))
        self._put("encoder/conv1/bias", self._tiled(bias + np.einsum("ock,c->o", weight, constant)))
        self._put("encoder/conv2/weight", self._tiled(self._inputs(self._demo["encoder/conv2/weight"])))
        self._put("encoder/conv2/bias", self._tiled(self._demo["encoder/conv2/bias"]))
        self._fill_rest("encoder", self._shape.encoder_layers)
        self._fill_norm("encoder/layer_norm", "encoder/layer_norm")

    def fill_decoder(self) -> None:
        embeddings = self._demo["decoder/embeddings/weight"]
        if self._shape.cantonese:
            embeddings = np.insert(embeddings, _vocabulary(self._shape).index("<|yue|>"), 0, axis=0)
        self._put("decoder/embeddings/weight", self._tiled(embeddings, axis=1))
        self._fill_rest("decoder", self._shape.decoder_layers)
        # The projection adds up all copies.
        self._fill_norm("decoder/layer_norm", "decoder/layer_norm", 1 / self._times)

    def _put(self, name: str, values: Array) -> None:
        self.weights[name] = np.ascontiguousarray(values, np.float16)

    def _put_linear(self, name: str, weight: Array) -> None:
        """`weight` has the bias as its last column."""
        self._put(f"{name}/weight", weight[:, :-1])
        self._put(f"{name}/bias", weight[:, -1])

    def alignment_heads(self, of_demo: Sequence[tuple[int, int]]) -> list[list[int]]:
        """Copies of the demo model's: as many as the real model has, and of each the same number."""
        copies = min(self._heads, max(1, len(self._shape.alignment_heads) // len(of_demo)))
        return [[layer, head * self._heads + copy] for layer, head in of_demo for copy in range(copies)]

    def _fill_rest(self, part: str, layers: int) -> None:
        name = f"{part}/position_encodings/encodings"
        self._put(name, self._tiled(self._demo[name], axis=1))
        for number in range(layers):
            layer = f"{part}/layer_{number}"
            copied = number < _DEMO_LAYERS[part]
            self._fill_attention(f"{layer}/self_attention", 1, copied=copied)
            if part == "decoder":
                self._fill_attention(f"{layer}/attention", 2, copied=copied)
            self._fill_feed_forward(f"{layer}/ffn", copied=copied)

    def _fill_attention(self, name: str, inner: int, *, copied: bool) -> None:
        """`inner`: linear layers that queries, keys and values have. If it is not copied, it adds nothing."""
        self._fill_norm(f"{name}/layer_norm", f"{name}/layer_norm" if copied else None)
        demo: Sequence[Array | None] = [None] * 3
        if copied:
            layers = [self._rows(f"{name}/linear_{number}") for number in range(inner)]
            demo = np.split(np.concatenate(layers), 3)
        # Scores are divided by the root of a head's width, which is twice that of the demo model.
        queries = self._heads_of(demo[0], scale=2**0.5)
        keys, values = self._heads_of(demo[1], opposite=True), self._heads_of(demo[2])
        parts = [[queries, keys, values]] if inner == 1 else [[queries], [keys, values]]
        for number, part in enumerate(parts):
            self._put_linear(f"{name}/linear_{number}", np.concatenate(part))
        self._put_linear(
            f"{name}/linear_{inner}", self._outputs(f"{name}/linear_{inner}" if copied else None)
        )

    def _heads_of(self, demo: Array | None, scale: float = 1.0, *, opposite: bool = False) -> Array:
        """Queries, keys or values of all heads: those of the demo model in the first half of each copy.

        In the second halves, queries times keys are 0, and `_outputs` lets the values cancel each other. So
        do the values of the heads that are no copies: every second one is like that before.
        """
        columns, copied = self._shape.width + 1, 0 if demo is None else _DEMO_HEADS * self._heads
        others = np.repeat(self._random((self._shape.heads - copied) // 2, 64, columns), 2, axis=0)
        if demo is None:
            return others.reshape(-1, columns)
        heads = np.repeat(demo.reshape(_DEMO_HEADS, 32, columns) * scale, self._heads, axis=0)
        added = self._random(copied, 16, columns)
        heads = np.concatenate([heads, added, -added if opposite else added], axis=1)
        return np.concatenate([heads, others]).reshape(-1, columns)

    def _outputs(self, name: str | None) -> Array:
        width, copied = self._shape.width, 0 if name is None else _DEMO_HEADS * self._heads
        others = self._random(width, (self._shape.heads - copied) // 2, 1, 64)
        others = np.concatenate([others, -others], axis=2).reshape(width, -1)
        if name is None:
            return np.append(others, _zeros(width), axis=1)
        weight = self._demo[f"{name}/weight"].reshape(-1, _DEMO_HEADS, 32) / self._heads
        heads = self._tiled(np.repeat(weight, self._heads, axis=1))
        added = self._random(width, copied, 16)
        heads = np.concatenate([heads, added, -added], axis=2).reshape(width, -1)
        bias = self._tiled(self._demo[f"{name}/bias"])[:, None]
        return np.concatenate([heads, others, bias], axis=1)

    def _fill_feed_forward(self, name: str, *, copied: bool) -> None:
        self._fill_norm(f"{name}/layer_norm", f"{name}/layer_norm" if copied else None)
        if copied:
            self._put_linear(f"{name}/linear_0", self._tiled(self._rows(f"{name}/linear_0")))
            self._put_linear(f"{name}/linear_1", self._tiled(self._rows(f"{name}/linear_1")))
            return
        width = self._shape.width
        self._put_linear(f"{name}/linear_0", np.tile(self._random(2 * width, width + 1), (2, 1)))
        half = self._random(width, 2 * width)
        self._put_linear(f"{name}/linear_1", np.concatenate([half, -half, _zeros(width)], axis=1))

    def _fill_norm(self, name: str, of_demo: str | None, scale: float = 1.0) -> None:
        """Without `of_demo`, the values do not change."""
        width = self._shape.width
        for kind, usual in (("gamma", 1.0), ("beta", 0.0)):
            values = (
                np.full(width, usual) if of_demo is None else self._tiled(self._demo[f"{of_demo}/{kind}"])
            )
            self._put(f"{name}/{kind}", values * scale)

    def _rows(self, name: str) -> Array:
        """A linear layer of the demo model for inputs that are there several times; its bias comes last."""
        weight, bias = self._demo[f"{name}/weight"], self._demo[f"{name}/bias"]
        return np.append(self._inputs(weight), bias[:, None], axis=1)

    def _inputs(self, weight: Array) -> Array:
        return self._tiled(weight, axis=1) / self._times

    def _tiled(self, values: Array, axis: int = 0) -> Array:
        return np.concatenate([values] * self._times, axis=axis)

    def _random(self, *shape: int) -> Array:
        count = int(np.prod(shape))
        first = self._source.integers(len(self._values) - count)
        return self._values[first : first + count].reshape(shape)


def _zeros(rows: int) -> Array:
    return np.zeros((rows, 1), np.float16)


def _old_mel_bins(count: int, sound: Array | None) -> tuple[Array, Array]:
    """The demo model's mel bins as a linear function of `count` others: shapes (80, count) and (80,)."""
    from workers.whisper.torch.features import Spectrograms

    if count == 80:
        return np.eye(80, dtype="f4"), np.zeros(80, "f4")
    if sound is None:
        sound = read(DEMO_PATH / "sample.flac")
    pcm, seconds = sound.astype("<i2").tobytes(), len(sound) // SAMPLE_RATE
    both = (Spectrograms(bins, "cpu", 1) for bins in (80, count))
    old, new = (made(*made.upload([pcm], seconds))[0].double().numpy() for made in both)
    old_mean, new_mean = old.mean(axis=1, keepdims=True), new.mean(axis=1, keepdims=True)
    known, wanted = new - new_mean, old - old_mean
    bins = np.linalg.solve(known @ known.T + np.eye(count), known @ wanted.T).T  # ridge regression
    return bins, (old_mean - bins @ new_mean)[:, 0]


def _vocabulary(shape: Dimensions) -> list[str]:
    vocabulary: list[str] = _demo("vocabulary.json")
    if shape.cantonese:
        vocabulary.insert(vocabulary.index("<|su|>") + 1, "<|yue|>")
    return vocabulary


def _tokenizer(shape: Dimensions) -> Any:
    tokenizer = _demo("tokenizer.json")
    if shape.cantonese:
        added = tokenizer["added_tokens"]
        place = next(index for index, token in enumerate(added) if token["content"] == "<|su|>") + 1
        new = added[place - 1] | {"content": "<|yue|>", "id": added[place]["id"]}
        moved = [token | {"id": token["id"] + 1} for token in added[place:]]
        tokenizer["added_tokens"] = [*added[:place], new, *moved]
    return tokenizer


def main() -> None:
    """Create one model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("shape", choices=list(SHAPES))
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    make_model(SHAPES[arguments.shape], arguments.folder)


if __name__ == "__main__":
    main()
