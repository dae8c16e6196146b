"""Whether the files in a model's folder fit together. Reads the shapes in `model.bin`, not its weights.

CTranslate2 and faster-whisper accept files of different models, and then fail on every clip, crash, or give
wrong text and times.
"""

import json
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

_BINARY_VERSIONS = range(4, 7)  # of model.bin with the layout that `read_layout` knows
_MULTILINGUAL_TOKENS = 51_865  # of the smallest vocabulary for all languages; that for English has one less
_DEFAULT_MEL_BINS = 80  # of faster-whisper, if preprocessor_config.json does not name a number


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The dimensions of a Whisper model."""

    mel_bins: int
    vocabulary: int  # number of tokens
    decoder_layers: int
    decoder_heads: int | None  # in each layer; None if the file does not say

    @property
    def multilingual(self) -> bool:
        """Whether the model knows more than English, as CTranslate2 sees it."""
        return self.vocabulary >= _MULTILINGUAL_TOKENS


def check_files(folder: Path) -> None:
    """Raise RuntimeError if a file does not fit the model's weights, or if there is no tokenizer.

    A `model.bin` that is damaged, or in another format, passes: CTranslate2 says what is wrong with it.
    """
    if not (folder / "tokenizer.json").is_file():
        # faster-whisper would download that of another model.
        raise RuntimeError("the model's folder has no tokenizer.json")
    tokenizer = read_json(folder / "tokenizer.json")
    if not tokenizer:
        raise RuntimeError("the model's tokenizer.json is damaged")
    shape = read_shape(folder / "model.bin")
    if shape is not None:
        _check_mel_bins(read_json(folder / "preprocessor_config.json"), shape)
        _check_tokens(_tokenizer_ids(tokenizer), read_vocabulary(folder), shape)


def missing_word_times(folder: Path) -> str | None:
    """Why the model cannot give word times; None if it can.

    CTranslate2 reads memory that is not its own if `config.json` names a layer or a head that the model
    lacks. The converter copies them from models that others made smaller.
    """
    heads = read_json(folder / "config.json").get("alignment_heads")
    if not heads:
        return "no word times: the model's config.json names no alignment_heads"
    shape = read_shape(folder / "model.bin")
    if shape is None or all(_exists(head, shape) for head in heads):
        return None
    return "no word times: alignment_heads in the model's config.json names heads that the model lacks"


def read_shape(path: Path) -> ModelShape | None:
    """The dimensions of the Whisper model in CTranslate2's `model.bin`; None if it is not one."""
    try:
        with path.open("rb") as file:
            weights, scalars, aliases = read_layout(file)
            embeddings = aliases.get("decoder/embeddings/weight", "decoder/embeddings/weight")
            parts = {name.split("/")[1] for name in weights if name.startswith("decoder/layer_")}
            return ModelShape(
                mel_bins=weights["encoder/conv1/weight"].shape[1],
                vocabulary=weights[embeddings].shape[0],
                decoder_layers=len(parts - {"layer_norm"}),
                decoder_heads=scalars.get("decoder/num_heads"),
            )
    except (OSError, struct.error, ValueError, KeyError, IndexError):
        return None


class StoredWeight(NamedTuple):
    """Where a `model.bin` has the values of a weight."""

    shape: tuple[int, ...]
    kind: int  # of the values
    start: int  # in the file, in bytes


def read_layout(file: BinaryIO) -> tuple[dict[str, StoredWeight], dict[str, int], dict[str, str]]:
    """The weights and scalars of a Whisper model in a `model.bin`, and what further names stand for.

    The layout is that of `ctranslate2.specs.model_spec.ModelSpec.save`. Raises ValueError for another one.
    """
    if read_number(file, "I") not in _BINARY_VERSIONS or read_string(file) != "WhisperSpec":
        raise ValueError("model.bin has no Whisper model, or another format")
    read_number(file, "I")  # revision
    weights, scalars = {}, {}
    for _ in range(read_number(file, "I")):
        name = read_string(file)
        shape = tuple(read_number(file, "I") for _ in range(read_number(file, "B")))
        kind, size = read_number(file, "B"), read_number(file, "I")
        if shape:
            weights[name] = StoredWeight(shape, kind, file.tell())
            file.seek(size, 1)
        else:
            scalars[name] = int.from_bytes(file.read(size), "little")
    return weights, scalars, {read_string(file): read_string(file) for _ in range(read_number(file, "I"))}


def read_number(file: BinaryIO, kind: str) -> int:
    """The next number of a `model.bin`. `kind` is that of `struct`: B, H or I."""
    value: int = struct.unpack(f"<{kind}", file.read(struct.calcsize(f"<{kind}")))[0]
    return value


def read_string(file: BinaryIO) -> str:
    """The next text of a `model.bin`."""
    return file.read(read_number(file, "H"))[:-1].decode()


def _check_mel_bins(preprocessor: dict[str, Any], shape: ModelShape) -> None:
    mel_bins = preprocessor.get("feature_size", _DEFAULT_MEL_BINS)
    if mel_bins != shape.mel_bins:
        says = "says" if "feature_size" in preprocessor else "is missing, which means"
        raise RuntimeError(
            f"the model's files do not fit together: preprocessor_config.json {says} {mel_bins} mel bins, "
            f"but the model has {shape.mel_bins}"
        )


def _check_tokens(tokenizer: dict[str, int], vocabulary: list[str], shape: ModelShape) -> None:
    """The tokenizer may lack the timestamps, which are the last tokens: faster-whisper counts them itself."""
    size = max(tokenizer.values(), default=-1) + 1
    if size > shape.vocabulary:
        raise _other_tokenizer(f"tokenizer.json has {size} tokens, but the model has {shape.vocabulary}")
    for token in ("<|startoftranscript|>", "<|notimestamps|>"):
        known = token in vocabulary and token in tokenizer
        if known and vocabulary.index(token) != tokenizer[token]:
            raise _other_tokenizer(
                f"{token} is token {tokenizer[token]} in tokenizer.json, and {vocabulary.index(token)} in "
                "the model's vocabulary"
            )


def _other_tokenizer(difference: str) -> RuntimeError:
    return RuntimeError(f"the model's files do not fit together: {difference}")


def _tokenizer_ids(tokenizer: dict[str, Any]) -> dict[str, int]:
    vocabulary = tokenizer.get("model", {}).get("vocab", {})
    added = {token["content"]: token["id"] for token in tokenizer.get("added_tokens", ())}
    return (vocabulary if isinstance(vocabulary, dict) else {}) | added


def read_vocabulary(folder: Path) -> list[str]:
    """The model's tokens in order; empty if the file is missing, which CTranslate2 reports."""
    with suppress(OSError, ValueError):
        return list(json.loads((folder / "vocabulary.json").read_text(encoding="utf-8")))
    with suppress(OSError, ValueError):
        return (folder / "vocabulary.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return []


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; empty if it cannot be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _exists(head: Any, shape: ModelShape) -> bool:
    match head:
        case [int(layer), int(index)]:
            heads = index + 1 if shape.decoder_heads is None else shape.decoder_heads
            return 0 <= layer < shape.decoder_layers and 0 <= index < heads
    return False
