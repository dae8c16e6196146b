"""A Whisper model of real size with random weights, for machines that cannot download one.

    .venv/bin/python bench/random_model.py large-v3-turbo FOLDER [--tokens 100]

It loads, encodes, decodes and aligns like the model of that name, in the same time and with the same memory.
For any audio it returns the same words, `--tokens` tokens long, with high probability. So each clip takes one
window of one length, and figures for different batch sizes and devices are comparable.

The decoder's position encodings are large, and each points at the next token. All other weights are too small
to change that. This works only with Whisper's basic prompt of three tokens, so requests must not set a prompt
or hot words.

Size on disk in float16: 3.1 GB for large-v3, 1.6 GB for large-v3-turbo. Creating a model needs about as much
memory.
"""

import argparse
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from app.engines.model_files import DEMO_PATH
from bench.model_sizes import FRAMES, POSITIONS, SHAPES, Dimensions

_PROMPT_TOKENS = 3  # <|startoftranscript|>, language, task
_POINTER = 100.0  # length of a position encoding; an embedding's is about 1
_NOISE = 1e-3  # standard deviation of all other weights
_MOST_TOKENS = 200  # decoding ends at 448 tokens with the prompt; 30 s of speech never has more than this


def make_model(shape: Dimensions, folder: Path, tokens: int = 100, seed: int = 0) -> None:
    """Write a model folder in CTranslate2's format. `tokens`: in each clip's text, without timestamps."""
    if not 1 <= tokens <= _MOST_TOKENS:
        raise ValueError(f"a clip can have 1 to {_MOST_TOKENS} tokens, not {tokens}")
    from ctranslate2.specs.whisper_spec import WhisperSpec

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = _vocabulary(shape)
    source = np.random.default_rng(seed)
    spec = WhisperSpec(shape.encoder_layers, shape.heads, shape.decoder_layers, shape.heads)
    _fill_encoder(spec.encoder, shape, source)
    _fill_decoder(spec.decoder, shape, source, vocabulary, _script(vocabulary, tokens, seed))
    spec.register_vocabulary(vocabulary)
    spec.config.suppress_ids = []
    spec.config.suppress_ids_begin = [vocabulary.index("<|endoftext|>")]
    first, last = vocabulary.index("<|en|>"), vocabulary.index("<|translate|>")
    spec.config.lang_ids = list(range(first, last))
    spec.config.alignment_heads = [list(head) for head in shape.alignment_heads]
    spec.validate()
    # Whisper's output projection is its embedding, so it is stored once.
    spec.decoder.projection.weight = "decoder/embeddings/weight"
    spec.save(str(folder))
    _write_tokenizer(folder, shape)
    preprocessor = json.loads((DEMO_PATH / "preprocessor_config.json").read_text())
    preprocessor["feature_size"] = shape.mel_bins
    (folder / "preprocessor_config.json").write_text(json.dumps(preprocessor))


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


def _script(vocabulary: Sequence[str], tokens: int, seed: int) -> list[int]:
    """The token that each position of the decoder points at, from the first position on."""
    # Different words: repetitive text would be decoded again.
    words = [
        index
        for index, text in enumerate(vocabulary)
        if text[:1] == "Ġ" and len(text) > 4 and text[1:].isascii() and text[1:].isalpha()
    ]
    said = random.Random(seed).sample(words, tokens)
    ids = {text: index for index, text in enumerate(vocabulary) if text[:2] == "<|"}
    prompt = [ids["<|en|>"], ids["<|transcribe|>"]]
    assert len(prompt) == _PROMPT_TOKENS - 1
    return [*prompt, ids["<|0.00|>"], *said, ids["<|30.00|>"], ids["<|endoftext|>"]]


def _random(source: np.random.Generator, *shape: int) -> Any:
    return (source.standard_normal(shape, np.float32) * _NOISE).astype(np.float16)


def _fill_linear(linear: Any, source: np.random.Generator, outputs: int, inputs: int) -> None:
    linear.weight = _random(source, outputs, inputs)
    linear.bias = np.zeros(outputs, np.float16)


def _fill_norm(norm: Any, width: int) -> None:
    norm.gamma, norm.beta = np.ones(width, np.float16), np.zeros(width, np.float16)


def _fill_layer(layer: Any, source: np.random.Generator, width: int) -> None:
    _fill_norm(layer.self_attention.layer_norm, width)
    _fill_linear(layer.self_attention.linear[0], source, 3 * width, width)
    _fill_linear(layer.self_attention.linear[1], source, width, width)
    _fill_norm(layer.ffn.layer_norm, width)
    _fill_linear(layer.ffn.linear_0, source, 4 * width, width)
    _fill_linear(layer.ffn.linear_1, source, width, 4 * width)
    if hasattr(layer, "attention"):
        _fill_norm(layer.attention.layer_norm, width)
        _fill_linear(layer.attention.linear[0], source, width, width)
        _fill_linear(layer.attention.linear[1], source, 2 * width, width)
        _fill_linear(layer.attention.linear[2], source, width, width)


def _fill_encoder(encoder: Any, shape: Dimensions, source: np.random.Generator) -> None:
    width = shape.width
    for conv, channels in ((encoder.conv1, shape.mel_bins), (encoder.conv2, width)):
        conv.weight = _random(source, width, channels, 3)
        conv.bias = np.zeros(width, np.float16)
    encoder.position_encodings.encodings = _random(source, FRAMES, width)
    _fill_norm(encoder.layer_norm, width)
    for layer in encoder.layer:
        _fill_layer(layer, source, width)


def _fill_decoder(
    decoder: Any,
    shape: Dimensions,
    source: np.random.Generator,
    vocabulary: Sequence[str],
    script: Sequence[int],
) -> None:
    width = shape.width
    embeddings = source.standard_normal((len(vocabulary), width), np.float32) / np.sqrt(width)
    # Decoding never reaches positions after the end.
    pointed_at = [*script, *[script[-1]] * (POSITIONS - len(script))]
    decoder.position_encodings.encodings = (embeddings[pointed_at] * _POINTER).astype(np.float16)
    decoder.embeddings.weight = embeddings.astype(np.float16)
    decoder.projection.weight = decoder.embeddings.weight
    _fill_norm(decoder.layer_norm, width)
    for layer in decoder.layer:
        _fill_layer(layer, source, width)


def main() -> None:
    """Create one model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("shape", choices=list(SHAPES))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokens", type=int, default=100, help="tokens of each clip's text")
    arguments = parser.parse_args()
    make_model(SHAPES[arguments.shape], arguments.folder, arguments.tokens)


if __name__ == "__main__":
    main()
