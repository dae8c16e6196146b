"""Tiny voice models in ONNX files: the embedding is the mean of the features over time, times a matrix."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

VALUES = 16
MATRIX = np.random.default_rng(7).normal(size=(80, VALUES)).astype(np.float32)


def kaldi_model(
    path: Path, metadata: Mapping[str, str] | None = None, bands: int = 80, name: str = "feats"
) -> Path:
    """A model with the inputs and outputs of WeSpeaker's: shapes (B, T, 80) and (B, values).

    Its embedding is that of the variance over time: the mean of mean-normalised features is 0.
    """
    nodes = [
        helper.make_node("Mul", [name, name], ["squared"]),
        helper.make_node("ReduceMean", ["squared"], ["mean"], axes=[1], keepdims=0),
        helper.make_node("MatMul", ["mean", "matrix"], ["embs"]),
    ]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", "T", bands])]
    outputs = [helper.make_tensor_value_info("embs", TensorProto.FLOAT, ["B", VALUES])]
    return _write(path, nodes, inputs, outputs, metadata or {}, bands)


def titanet_model(path: Path) -> Path:
    """A model with the inputs and outputs of NeMo's: (B, 80, T), lengths (B,), and logits beside `embs`."""
    nodes = [
        helper.make_node("Abs", ["audio_signal"], ["positive"]),
        helper.make_node("ReduceMean", ["positive"], ["mean"], axes=[2], keepdims=0),
        helper.make_node("MatMul", ["mean", "matrix"], ["embs"]),
        helper.make_node("Cast", ["length"], ["logits"], to=TensorProto.FLOAT),
    ]
    inputs = [
        helper.make_tensor_value_info("audio_signal", TensorProto.FLOAT, ["B", 80, "T"]),
        helper.make_tensor_value_info("length", TensorProto.INT64, ["B"]),
    ]
    outputs = [
        helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["B"]),
        helper.make_tensor_value_info("embs", TensorProto.FLOAT, ["B", VALUES]),
    ]
    return _write(path, nodes, inputs, outputs, {"framework": "nemo", "sample_rate": "16000"}, 80)


def _write(
    path: Path, nodes: list, inputs: list, outputs: list, metadata: Mapping[str, str], bands: int
) -> Path:
    matrix = numpy_helper.from_array(MATRIX[:bands], "matrix")
    graph = helper.make_graph(nodes, "voices", inputs, outputs, [matrix])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    helper.set_model_props(model, dict(metadata))
    onnx.save(model, path)
    return path
