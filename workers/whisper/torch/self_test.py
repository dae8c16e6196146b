"""Whether torch computes on a device what it should: a worker first decodes a bundled sentence."""

import json
from dataclasses import replace

from workers.messages import BackendUnfit, DecodingOptions, LoadOptions, WindowResult
from workers.whisper.model import LoadedModel
from workers.whisper.sentence import FOLDER, sentence
from workers.whisper.torch.torch_backend import TorchBackend

_SAME_SCORE = 1e-2  # of a text with and without a recorded step


def self_test(model: LoadedModel, options: LoadOptions, compute_type: str) -> None:
    """Raise BackendUnfit unless the demo model says what is known, and the model the same in both ways.

    Both ways: with the steps that the GPU has recorded, and without.
    """
    demo = LoadedModel(replace(options, path=str(FOLDER), batch_size=1), compute_type)
    known = json.loads((FOLDER / "sample.json").read_text("utf-8"))
    found = _decode(demo)
    demo.close()
    if _tokens(found) != known["tokens"]:
        raise BackendUnfit("the demo model has another text than it should")
    network = model.network
    assert isinstance(network, TorchBackend)
    _decode(model)  # records
    replayed = _decode(model)
    network.recorder.replays = False
    computed = _decode(model)
    network.recorder.replays = True
    if _tokens(replayed) != _tokens(computed):
        raise BackendUnfit("a recorded step gives another text than a computed one")
    if abs(replayed.avg_logprob - computed.avg_logprob) > _SAME_SCORE:
        raise BackendUnfit("a recorded step gives other scores than a computed one")


def _decode(model: LoadedModel) -> WindowResult:
    return model.decode([sentence(DecodingOptions("demo", language="en", word_timestamps=True))])[0]


def _tokens(result: WindowResult) -> list[int]:
    return [token for text in result.texts for token in text.tokens]
