"""The decoder with its memory: what it has seen of the prompt, of each beam's text and of the audio.

Keys and values never move. Those of all beams of a window are one set, and a mask says which of them are in
the text of a beam. The prompt's stand there once, and the audio's once for all beams, which are positions of
the query. Shapes: B windows, K beams, H heads, P places for the prompt, N most tokens of a text.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from workers.whisper.backend import MAX_TOKENS, Search
from workers.whisper.torch.network import Network
from workers.whisper.torch.rules import Rules
from workers.whisper.torch.search import MAX_NEW_TOKENS, Texts, advance

Tensor = torch.Tensor
KeysAndValues = list[tuple[Tensor, Tensor]]  # of each layer

# Places for a prompt: those of a task alone, and of all the text that may come before it.
PROMPT_PLACES = (8, 232)


def prompt_places(tokens: int) -> int:
    """How many places a prompt of so many tokens gets."""
    return next(places for places in PROMPT_PLACES if tokens <= places)


@dataclass(frozen=True, slots=True)
class Audio:
    """The encoder's output of B windows, as the decoder's layers see it."""

    memory: KeysAndValues  # each (B, H, PADDED_FRAMES, D / H)
    bias: Tensor  # (1, 1, 1, PADDED_FRAMES): 0, or minus infinity for padding

    def rows(self, part: slice) -> "Audio":
        """Some of the windows."""
        return Audio([(keys[part], values[part]) for keys, values in self.memory], self.bias)


def reserve(network: Network, windows: int, places: int) -> KeysAndValues:
    """Memory for keys and values of so many windows."""
    shape = _shape(network, windows, places)
    return [
        (network.embeddings.new_zeros(shape), network.embeddings.new_zeros(shape)) for _ in network.layers
    ]


def remember(network: Network, encoded: Tensor, audio: Audio, first: int) -> None:
    """Write what the decoder's layers see of the encoder's output (B, S, D), from window `first` on."""
    rows, frames = encoded.shape[:2]
    for layer, of_layer in zip(network.layers, audio.memory, strict=True):
        for stored, new in zip(of_layer, network.keys_of_audio(layer, encoded), strict=True):
            stored[first : first + rows, :, :frames] = new
            # What cannot be seen must be finite all the same.
            stored[first : first + rows, :, frames:] = 0
    audio.bias[..., :frames], audio.bias[..., frames:] = 0, -torch.inf


def prefill(
    network: Network,
    audio: Audio,
    tokens: Tensor,
    memory: KeysAndValues | None = None,
    queries: list[Tensor] | None = None,
) -> Tensor:
    """The decoder's output for tokens from position 0 on, (B, length) to (B, length, D).

    Each sees itself and those before. `memory` gets their keys and values, and `queries` what each layer asks
    the audio, (B, H, length, D / H).
    """
    positions = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
    x = network.embed(tokens, positions)
    for number, (layer, seen) in enumerate(zip(network.layers, audio.memory, strict=True)):
        query, key, value = network.queries(f"{layer}/self_attention", x)
        if memory is not None:
            keys, values = memory[number]
            keys[:, :, : key.shape[2]], values[:, :, : key.shape[2]] = key, value
        x = network.attend(f"{layer}/self_attention", x, query, key, value, causal=True)
        [query] = network.queries(f"{layer}/attention", x)
        if queries is not None:
            queries.append(query)
        x = network.attend(f"{layer}/attention", x, query, *seen, bias=audio.bias)
        x = network.feed_forward(layer, x)
    return x


class Decoder:
    """Decodes batches of one shape: after each `step`, every text has a token more.

    All of its tensors stay where they are, so a GPU can record a step, and replay it for later batches.
    """

    def __init__(
        self, network: Network, audio: Audio, rules: Rules, beams: int, places: int, memory: KeysAndValues
    ) -> None:
        """For batches of as many windows as `audio` has, with `places` for prompts.

        `memory` is used for keys and values if it is large enough, whatever its shape.
        """
        windows = len(audio.memory[0][0])
        self._network, self._audio, self._rules, self._beams = network, audio, rules, beams
        self._recorded: dict[Search, torch.cuda.CUDAGraph] = {}
        self._memory = _shaped(memory, network, windows, places + MAX_NEW_TOKENS * beams)
        self._prompts = torch.zeros((windows, places), dtype=torch.int64, device=network.embeddings.device)
        self._lengths = self._prompts.new_ones(windows)
        self._in_prompt = self._prompts.bool()
        self.texts = Texts.begin(
            torch.ones_like(self._lengths),
            torch.zeros_like(self._lengths),
            self._lengths > 0,
            Search(beams),
            rules,
        )

    def begin(
        self, prompts: Sequence[Sequence[int]], asked: Sequence[int], hashes: Sequence[int], search: Search
    ) -> Tensor:
        """Read the prompts of a batch, and choose the first token of each text.

        `hashes`: of the windows' audio. The batch may be smaller than the shape. Returns the logits (B, V)
        after the token of each prompt at the place that is `asked` for.
        """
        windows, places = self._prompts.shape
        fill = windows - len(prompts)
        rows = [[*prompt, *[0] * (places - len(prompt))] for prompt in prompts]
        lengths = [*map(len, prompts), *[1] * fill]

        def tensor(values: list[Any]) -> Tensor:
            return torch.tensor(values, device=self._prompts.device)

        self._prompts.copy_(tensor([*rows, *[[0] * places] * fill]))
        self._lengths.copy_(tensor(lengths))
        self._in_prompt.copy_(torch.arange(places, device=self._lengths.device) < self._lengths[:, None])
        limits = [min(MAX_NEW_TOKENS, MAX_TOKENS - length + 1) for length in lengths]
        is_filler = [*[False] * len(prompts), *[True] * fill]
        self.texts.become(
            Texts.begin(
                tensor(limits), tensor([*hashes, *[0] * fill]), tensor(is_filler), search, self._rules
            )
        )
        for keys, values in self._memory:
            keys.zero_(), values.zero_()
        x = prefill(self._network, self._audio, self._prompts, self._memory)
        both = torch.stack([tensor([*asked, *[0] * fill]), self._lengths - 1], 1)
        logits = self._network.logits(x.gather(1, both[..., None].expand(-1, -1, x.shape[-1])))
        advance(self.texts, logits[:, 1:].expand(-1, self._beams, -1), self._rules, search)
        return logits[:, 0]

    def record(self, search: Search) -> None:
        """Let a GPU record a step, which costs the host one call from then on, instead of hundreds."""
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._compute_step(search)
        self._recorded[search] = graph

    def step(self, search: Search, *, replay: bool = True) -> None:
        """Read the last token of each text and choose the next one. The host reads nothing.

        `replay`: as it was recorded, if it was.
        """
        if replay and (graph := self._recorded.get(search)) is not None:
            graph.replay()
        else:
            self._compute_step(search)

    def _compute_step(self, search: Search) -> None:
        texts, network = self.texts, self._network
        position = (self._lengths + texts.step - 1).clamp(max=MAX_TOKENS - 1)
        beams = torch.arange(self._beams, device=position.device)
        places = self._prompts.shape[1] + (texts.step - 1) * self._beams + beams
        in_prompt = self._in_prompt[:, None].expand(-1, self._beams, -1)
        visible = torch.cat([in_prompt, texts.lineage], -1)[:, None]
        bias = torch.zeros_like(visible, dtype=network.embeddings.dtype).masked_fill(~visible, -torch.inf)
        x = network.embed(texts.last, position[:, None].expand_as(texts.last))
        for layer, (keys, values), seen in zip(network.layers, self._memory, self._audio.memory, strict=True):
            query, key, value = network.queries(f"{layer}/self_attention", x)
            keys.index_copy_(2, places, key)
            values.index_copy_(2, places, value)
            x = network.attend(f"{layer}/self_attention", x, query, keys, values, bias=bias)
            [query] = network.queries(f"{layer}/attention", x)
            x = network.attend(f"{layer}/attention", x, query, *seen, bias=self._audio.bias)
            x = network.feed_forward(layer, x)
        advance(texts, network.logits(x), self._rules, search)


def _shaped(memory: KeysAndValues, network: Network, windows: int, places: int) -> KeysAndValues:
    """The memory in the shape of a batch; other memory if it is too small."""
    shape = _shape(network, windows, places)
    size = math.prod(shape)
    if size > memory[0][0].numel():
        return reserve(network, windows, places)
    return [
        (keys.flatten()[:size].view(shape), values.flatten()[:size].view(shape)) for keys, values in memory
    ]


def _shape(network: Network, windows: int, places: int) -> tuple[int, int, int, int]:
    return windows, network.heads, places, network.width // network.heads
