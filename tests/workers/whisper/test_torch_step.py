"""A step of the decoder as a GPU would run it: on tensors without values, which say that they are on one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.overrides import TorchFunctionMode

from app.engines.model_files import DEMO_PATH
from workers.whisper.backend import Search, SpecialTokens
from workers.whisper.torch.decoder import Decoder, reserve
from workers.whisper.torch.graphs import GraphRecorder
from workers.whisper.torch.network import Network
from workers.whisper.torch.token_rules import TokenRules
from workers.whisper.torch.weights import read_weights

TOKENS = SpecialTokens(sot=50258, eot=50257, no_timestamps=50363, no_speech=50362, suppressed=(1, 2))
SHAPES = {
    name: values.shape
    for name, values in read_weights(DEMO_PATH / "model.bin", "meta", torch.float32)[0].items()
}


class WithoutGpu(TorchFunctionMode):
    """Functions of torch that ask for a driver, done by others. An index has no tensors."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function is torch.Tensor.copy_:
            return torch.ops.aten.copy_(*args)
        if function is torch.Tensor.__invert__:
            return args[0].logical_not()
        if function is torch.Tensor.__getitem__:
            return _indexed(*args)
        if function is torch.Tensor.__setitem__ and args[0].device.type == "cuda":
            part, value = _indexed(*args[:2]), args[2]
            return part.fill_(value) if isinstance(value, float) else torch.ops.aten.copy_(part, value)
        if function is torch.Tensor.to and isinstance(args[1], str):
            return torch.empty_like(args[0], device=args[1])
        return function(*args, **(kwargs or {}))


def _indexed(tensor: torch.Tensor, index: Any) -> torch.Tensor:
    items = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in items:
        place = items.index(Ellipsis)
        missing = tensor.dim() - sum(item is not None and item is not Ellipsis for item in items)
        items[place : place + 1] = [slice(None)] * missing
    dimension = 0
    for item in items:
        if item is None:
            tensor = tensor.unsqueeze(dimension)
        elif isinstance(item, int):
            tensor = tensor.select(dimension, item)
            continue
        else:
            assert isinstance(item, slice), f"the shape would depend on the data: {item}"
            start, stop, step = item.indices(tensor.shape[dimension])
            assert step == 1
            tensor = tensor.narrow(dimension, start, max(0, stop - start))
        dimension += 1
    return tensor


@contextmanager
def fake_gpu() -> Iterator[None]:
    with (
        FakeTensorMode(allow_non_fake_inputs=False),
        torch.no_grad(),
        torch._C._AutoDispatchBelowAutograd(),
        WithoutGpu(),
    ):
        yield


PROMPTS = [[TOKENS.sot, 50259, 50360], [50361, 7, TOKENS.sot, 50259, 50360]]


def on_gpu(dtype: torch.dtype, beams: int) -> Decoder:
    """For two windows."""
    weights = {name: torch.empty(shape, dtype=dtype, device="cuda") for name, shape in SHAPES.items()}
    network = Network(weights, {"encoder/num_heads": 4, "decoder/num_heads": 4})
    rules = TokenRules(TOKENS, [TOKENS.eot], network.vocabulary, "cuda")
    audio = reserve(network, 2, 500)
    return Decoder(network, audio, rules, beams, 8, reserve(network, 2, 1200), GraphRecorder("cpu"))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("search", [Search(5), Search(1), Search(5, 0.4), Search(5, 0.0, 3)])
def test_a_step_reads_nothing_and_its_shapes_do_not_depend_on_the_data(
    dtype: torch.dtype, search: Search
) -> None:
    shapes = []
    with fake_gpu():
        decoder = on_gpu(dtype, search.beams)
        decoder.begin(PROMPTS, [0, 2], [1, 2], search)
        for number in (1, 57):
            decoder.step(search, number)
            tensors = list(vars(decoder.texts).values())
            assert {tensor.device.type for tensor in tensors} == {"cuda"}
            shapes.append([(tensor.shape, tensor.dtype) for tensor in tensors])
    assert all(before == after for before, after in pairwise(shapes))


@pytest.mark.parametrize(
    "read",
    [
        lambda values: values.sum().item(),
        lambda values: bool(values.all()),
        lambda values: values.masked_select(values),
        lambda values: values + torch.ones(2),
    ],
)
def test_such_tensors_show_what_a_step_must_not_do(read: Callable[[torch.Tensor], object]) -> None:
    with fake_gpu():
        done = on_gpu(torch.float32, 1).texts.done
        with pytest.raises((DataDependentOutputException, RuntimeError)):
            read(done)
