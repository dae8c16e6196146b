"""A Whisper model of real size with the transcripts of the demo model, for machines that cannot download one.

    .venv/bin/python bench/sized_model.py large-v3-turbo FOLDER

It loads, encodes, decodes and aligns like the model of that name, in the same time and with the same memory,
but has the demo model's texts and word times: its words are as many, and as long, as speech has them.

Each value of the demo model is there several times ("Net2Net", Chen et al. 2016, widens networks so), and
layer norms see the same mean and variance. What has to be added, heads and whole layers, has random weights
in pairs that cancel each other: a GPU multiplies zeros faster. Where there are 128 mel bins, the demo model's
80 are a linear function of them.

Size on disk in float16: 3.1 GB for large-v3, 1.6 GB for large-v3-turbo. Creating a model needs about twice as
much memory.
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

from app.engines.model_files import DEMO_PATH
from bench.model_sizes import SHAPES, Dimensions
from workers.whisper.model_check import read_number, read_string

Array = npt.NDArray[Any]

_TYPES = (np.float32, np.int8)  # of values, by their number in model.bin
_DEMO_HEADS, _DEMO_LAYERS = 4, {"encoder": 4, "decoder": 2}
_NOISE = 0.02  # standard deviation of the weights that cancel each other


def make_model(shape: Dimensions, folder: Path, seed: int = 0) -> None:
    """Write a model folder in CTranslate2's format. The shape must be as large as that of `tiny`."""
    from ctranslate2.specs.whisper_spec import WhisperSpec

    vocabulary = _vocabulary(shape)
    spec = WhisperSpec(shape.encoder_layers, shape.heads, shape.decoder_layers, shape.heads)
    copies = _Copies(shape, read_weights(DEMO_PATH / "model.bin"), np.random.default_rng(seed))
    copies.fill_encoder(spec.encoder)
    copies.fill_decoder(spec.decoder)
    spec.register_vocabulary(vocabulary)
    spec.config.suppress_ids = []
    spec.config.suppress_ids_begin = [vocabulary.index("<|endoftext|>")]
    known = json.loads((DEMO_PATH / "config.json").read_text())
    spec.config.lang_ids = known["lang_ids"]
    spec.config.alignment_heads = copies.alignment_heads(known["alignment_heads"])
    spec.validate()
    # Whisper's output projection is its embedding, so it is stored once.
    spec.decoder.projection.weight = "decoder/embeddings/weight"
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))
    _write_tokenizer(folder, shape)
    preprocessor = json.loads((DEMO_PATH / "preprocessor_config.json").read_text())
    preprocessor["feature_size"] = shape.mel_bins
    (folder / "preprocessor_config.json").write_text(json.dumps(preprocessor))
    generation = json.loads((DEMO_PATH / "generation_config.json").read_text())
    del generation["min_audio_context_s"]  # no real model is known to stand less than all
    (folder / "generation_config.json").write_text(json.dumps(generation))


def read_weights(path: Path) -> dict[str, Array]:
    """The weights in a `model.bin` with values of int8, float32, by name. Scalars are left out.

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
            if shape:
                stored[name] = np.frombuffer(content, _TYPES[kind]).reshape(shape)
    scales = {name: stored.pop(name) for name in list(stored) if name.endswith("_scale")}
    for name, scale in scales.items():
        weight = name.removesuffix("_scale")
        stored[weight] = stored[weight] / scale.reshape(-1, *[1] * (stored[weight].ndim - 1))
    return stored


class _Copies:
    """Fills a model with copies of the demo model's weights."""

    def __init__(self, shape: Dimensions, demo: Mapping[str, Array], source: np.random.Generator) -> None:
        self._shape = shape
        self._demo = demo
        self._source = source
        self._times = shape.width // demo["decoder/layer_norm/gamma"].size
        self._heads = shape.heads // _DEMO_HEADS  # copies of each head

    def fill_encoder(self, encoder: Any) -> None:
        bins, constant = _old_mel_bins(self._shape.mel_bins)
        weight, bias = self._demo["encoder/conv1/weight"], self._demo["encoder/conv1/bias"]
        encoder.conv1.weight = _half(self._tiled(np.einsum("ock,cm->omk", weight, bins)))
        encoder.conv1.bias = _half(self._tiled(bias + np.einsum("ock,c->o", weight, constant)))
        encoder.conv2.weight = _half(self._tiled(self._inputs(self._demo["encoder/conv2/weight"])))
        encoder.conv2.bias = _half(self._tiled(self._demo["encoder/conv2/bias"]))
        self._fill_rest(encoder, "encoder")
        self._fill_norm(encoder.layer_norm, "encoder/layer_norm")

    def fill_decoder(self, decoder: Any) -> None:
        embeddings = self._demo["decoder/embeddings/weight"]
        if self._shape.cantonese:
            embeddings = np.insert(embeddings, _vocabulary(self._shape).index("<|yue|>"), 0, axis=0)
        decoder.embeddings.weight = _half(self._tiled(embeddings, axis=1))
        decoder.projection.weight = decoder.embeddings.weight
        self._fill_rest(decoder, "decoder")
        # The projection adds up all copies.
        self._fill_norm(decoder.layer_norm, "decoder/layer_norm", 1 / self._times)

    def alignment_heads(self, of_demo: Sequence[tuple[int, int]]) -> list[list[int]]:
        """Copies of the demo model's: as many as the real model has, and of each the same number."""
        copies = min(self._heads, max(1, len(self._shape.alignment_heads) // len(of_demo)))
        return [[layer, head * self._heads + copy] for layer, head in of_demo for copy in range(copies)]

    def _fill_rest(self, part: Any, name: str) -> None:
        positions = self._demo[f"{name}/position_encodings/encodings"]
        part.position_encodings.encodings = _half(self._tiled(positions, axis=1))
        for number, layer in enumerate(part.layer):
            prefix = f"{name}/layer_{number}" if number < _DEMO_LAYERS[name] else None
            self._fill_attention(layer.self_attention, prefix and f"{prefix}/self_attention")
            if hasattr(layer, "attention"):
                self._fill_attention(layer.attention, prefix and f"{prefix}/attention")
            self._fill_feed_forward(layer.ffn, prefix and f"{prefix}/ffn")

    def _fill_attention(self, attention: Any, prefix: str | None) -> None:
        """Without `prefix`, nothing is added to what the layer gets."""
        self._fill_norm(attention.layer_norm, prefix and f"{prefix}/layer_norm")
        *inner, outer = attention.linear
        demo: Sequence[Array | None] = [None] * 3
        if prefix is not None:
            layers = [self._rows(f"{prefix}/linear_{number}") for number in range(len(inner))]
            demo = np.split(np.concatenate(layers), 3)
        # Scores are divided by the root of a head's width, which is twice that of the demo model.
        queries = self._heads_of(demo[0], scale=np.sqrt(2))
        keys, values = self._heads_of(demo[1], opposite=True), self._heads_of(demo[2])
        parts = [[queries, keys, values]] if len(inner) == 1 else [[queries], [keys, values]]
        for linear, part in zip(inner, parts, strict=True):
            _fill_linear(linear, np.concatenate(part))
        _fill_linear(outer, self._outputs(prefix and f"{prefix}/linear_{len(inner)}"))

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
            return np.append(others, np.zeros((width, 1)), axis=1)
        weight = self._demo[f"{name}/weight"].reshape(-1, _DEMO_HEADS, 32) / self._heads
        heads = self._tiled(np.repeat(weight, self._heads, axis=1))
        added = self._random(width, copied, 16)
        heads = np.concatenate([heads, added, -added], axis=2).reshape(width, -1)
        bias = self._tiled(self._demo[f"{name}/bias"])[:, None]
        return np.concatenate([heads, others, bias], axis=1)

    def _fill_feed_forward(self, part: Any, prefix: str | None) -> None:
        self._fill_norm(part.layer_norm, prefix and f"{prefix}/layer_norm")
        if prefix is not None:
            _fill_linear(part.linear_0, self._tiled(self._rows(f"{prefix}/linear_0")))
            _fill_linear(part.linear_1, self._tiled(self._rows(f"{prefix}/linear_1")))
            return
        width = self._shape.width
        _fill_linear(part.linear_0, np.tile(self._random(2 * width, width + 1), (2, 1)))
        half = self._random(width, 2 * width)
        _fill_linear(part.linear_1, np.concatenate([half, -half, np.zeros((width, 1))], axis=1))

    def _fill_norm(self, norm: Any, name: str | None, scale: float = 1.0) -> None:
        width = self._shape.width
        gamma = np.ones(width) if name is None else self._tiled(self._demo[f"{name}/gamma"]) * scale
        beta = np.zeros(width) if name is None else self._tiled(self._demo[f"{name}/beta"]) * scale
        norm.gamma, norm.beta = _half(gamma), _half(beta)

    def _rows(self, name: str) -> Array:
        """A linear layer of the demo model for inputs that are there several times; its bias comes last."""
        weight, bias = self._demo[f"{name}/weight"], self._demo[f"{name}/bias"]
        return np.append(self._inputs(weight), bias[:, None], axis=1)

    def _inputs(self, weight: Array) -> Array:
        return self._tiled(weight, axis=1) / self._times

    def _tiled(self, values: Array, axis: int = 0) -> Array:
        return np.concatenate([values] * self._times, axis=axis)

    def _random(self, *shape: int) -> Array:
        return self._source.standard_normal(shape, np.float32) * _NOISE


def _fill_linear(linear: Any, weight: Array) -> None:
    """`weight` has the bias as its last column."""
    linear.weight, linear.bias = _half(weight[:, :-1]), _half(weight[:, -1])


def _half(values: Array) -> Array:
    return np.ascontiguousarray(values, np.float16)


def _old_mel_bins(count: int) -> tuple[Array, Array]:
    """The demo model's mel bins as a linear function of `count` others: shapes (80, count) and (80,)."""
    from faster_whisper import decode_audio
    from faster_whisper.feature_extractor import FeatureExtractor

    if count == 80:
        return np.eye(80), np.zeros(80)
    sound = decode_audio(str(DEMO_PATH / "sample.flac"))
    old, new = (FeatureExtractor(feature_size=bins)(sound) for bins in (80, count))
    old_mean, new_mean = old.mean(axis=1, keepdims=True), new.mean(axis=1, keepdims=True)
    known, wanted = new - new_mean, old - old_mean
    bins = np.linalg.solve(known @ known.T + np.eye(count), known @ wanted.T).T  # ridge regression
    return bins, (old_mean - bins @ new_mean)[:, 0]


def _vocabulary(shape: Dimensions) -> list[str]:
    vocabulary: list[str] = json.loads((DEMO_PATH / "vocabulary.json").read_text(encoding="utf-8"))
    if shape.cantonese:
        vocabulary.insert(vocabulary.index("<|su|>") + 1, "<|yue|>")
    return vocabulary


def _write_tokenizer(folder: Path, shape: Dimensions) -> None:
    tokenizer = json.loads((DEMO_PATH / "tokenizer.json").read_text(encoding="utf-8"))
    if shape.cantonese:
        added = tokenizer["added_tokens"]
        place = next(index for index, token in enumerate(added) if token["content"] == "<|su|>") + 1
        new = added[place - 1] | {"content": "<|yue|>", "id": added[place]["id"]}
        moved = [token | {"id": token["id"] + 1} for token in added[place:]]
        tokenizer["added_tokens"] = [*added[:place], new, *moved]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")


def main() -> None:
    """Create one model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("shape", choices=list(SHAPES))
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    make_model(SHAPES[arguments.shape], arguments.folder)


if __name__ == "__main__":
    main()
