"""The decoder with its memory: what it has seen of the prompt, of each beam's text and of the audio.

Keys and values never move. Those of all beams of a window are one set, and a mask says which of them are in
the text of a beam. The prompt's stand there once, and the audio's once for all beams, which are positions of
the query. Shapes: B windows, K beams, H heads, P places for the prompt, N most tokens of a text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from workers.whisper.backend import MAX_TOKENS, Search
from workers.whisper.torch.network import PADDED_FRAMES, Network
from workers.whisper.torch.rules import Rules
from workers.whisper.torch.search import MAX_NEW_TOKENS, Texts, advance

Tensor = torch.Tensor
KeysAndValues = list[tuple[Tensor, Tensor]]  # of each layer

# Places for a prompt: those of a task alone, and of more and more text before it.
PROMPT_PLACES = (8, 64, 128, 232)


def prompt_places(tokens: int) -> int:
    """How many places a prompt of so many tokens gets."""
    return next(places for places in PROMPT_PLACES if tokens <= places)


@dataclass(frozen=True, slots=True)
class Audio:
    """The encoder's output of B windows, as the decoder's layers see it."""

    memory: KeysAndValues  # of each layer, each (B, H, PADDED_FRAMES, D / H)
    bias: Tensor  # (1, 1, 1, PADDED_FRAMES): 0, or minus infinity for padding

    def rows(self, first: int, last: int) -> "Audio":
        """Some of the windows."""
        return Audio([(keys[first:last], values[first:last]) for keys, values in self.memory], self.bias)


def audio_memory(network: Network, windows: int, device: str, dtype: torch.dtype) -> KeysAndValues:
    """Memory for the audio of so many windows."""
    return _memory(network, windows, PADDED_FRAMES, device, dtype)


def remember(network: Network, encoded: Tensor, memory: KeysAndValues, first: int) -> None:
    """Write what the decoder's layers see of the encoder's output to memory, from window `first` on."""
    rows, frames = encoded.shape[:2]
    for layer, (keys, values) in zip(network.layers, memory, strict=True):
        assert layer.audio.memory is not None
        key, value = layer.audio.split(layer.audio.memory(encoded), 2)
        keys[first : first + rows, :, :frames], values[first : first + rows, :, :frames] = key, value


def prefill(network: Network, audio: Audio, tokens: Tensor, memory: KeysAndValues | None = None) -> Tensor:
    """The decoder's output for tokens from position 0 on, (B, length) to (B, length, D).

    Each sees itself and those before. `memory` gets their keys and values.
    """
    positions = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
    x = network.embed(tokens, positions)
    for number, (layer, seen) in enumerate(zip(network.layers, audio.memory, strict=True)):
        query, key, value = layer.text.queries(x)
        if memory is not None:
            keys, values = memory[number]
            keys[:, :, : key.shape[2]], values[:, :, : key.shape[2]] = key, value
        x = layer.text.attend(x, query, key, value, causal=True)
        [query] = layer.audio.queries(x)
        x = layer.feed_forward(layer.audio.attend(x, query, *seen, audio.bias))
    return x


class Decoding:
    """A batch that is being decoded: after each `step`, its texts have a token more."""

    def __init__(
        self,
        network: Network,
        audio: Audio,
        rules: Rules,
        search: Search,
        prompts: Sequence[Sequence[int]],
        hashes: Sequence[int],
        windows: int,
    ) -> None:
        """`hashes`: of the windows' audio. The batch is filled up to `windows`."""
        device, dtype = network.embeddings.device, network.embeddings.dtype
        self._network, self._audio, self._rules, self._search = network, audio, rules, search
        self._places = prompt_places(max(map(len, prompts)))
        prompts = [*prompts, *[prompts[0]] * (windows - len(prompts))]
        lengths = [len(prompt) for prompt in prompts]
        self.prompts = torch.tensor(
            [[*prompt, *[0] * (self._places - len(prompt))] for prompt in prompts], device=device
        )
        self.lengths = torch.tensor(lengths, device=device)
        limits = [min(MAX_NEW_TOKENS, MAX_TOKENS - length + 1) for length in lengths]
        fill = windows - len(hashes)
        self.texts = Texts.begin(
            torch.tensor(limits, device=device),
            torch.tensor([*hashes, *[0] * fill], device=device),
            torch.tensor([*[False] * len(hashes), *[True] * fill], device=device),
            search,
            rules,
        )
        places = self._places + MAX_NEW_TOKENS * search.beams
        self._memory = _memory(network, windows, places, str(device), dtype)
        in_prompt = torch.arange(self._places, device=device) < self.lengths[:, None]
        self._in_prompt = in_prompt[:, None, None].expand(-1, 1, search.beams, -1)

    def begin(self, first: int) -> Tensor:
        """Read the prompts and choose the first tokens. Returns the logits (B, V) after token `first`."""
        x = prefill(self._network, self._audio, self.prompts, self._memory)
        places = torch.stack([torch.full_like(self.lengths, first), self.lengths - 1], 1)
        x = x.gather(1, places[..., None].expand(-1, -1, x.shape[-1]))
        logits = self._network.logits(x)
        after_prompt = logits[:, 1:].expand(-1, self._search.beams, -1)
        advance(self.texts, after_prompt, self._rules, self._search)
        return logits[:, 0]

    def step(self) -> None:
        """Read the last token of each text and choose the next one. The host reads nothing."""
        texts, network = self.texts, self._network
        dtype = network.embeddings.dtype
        position = (self.lengths + texts.step - 1).clamp(max=MAX_TOKENS - 1)
        beams = torch.arange(self._search.beams, device=position.device)
        places = self._places + (texts.step - 1) * self._search.beams + beams
        visible = torch.cat([self._in_prompt, texts.lineage[:, None]], -1)
        bias = torch.zeros(visible.shape, dtype=dtype, device=visible.device).masked_fill(
            ~visible, -torch.inf
        )
        x = network.embed(texts.last, position[:, None].expand_as(texts.last))
        for layer, (keys, values), seen in zip(network.layers, self._memory, self._audio.memory, strict=True):
            query, key, value = layer.text.queries(x)
            keys.index_copy_(2, places, key)
            values.index_copy_(2, places, value)
            x = layer.text.attend(x, query, keys, values, bias)
            [query] = layer.audio.queries(x)
            x = layer.feed_forward(layer.audio.attend(x, query, *seen, self._audio.bias))
        advance(texts, network.logits(x), self._rules, self._search)


def _memory(network: Network, windows: int, places: int, device: str, dtype: torch.dtype) -> KeysAndValues:
    shape = (windows, network.heads, places, network.width // network.heads)
    return [
        (torch.zeros(shape, dtype=dtype, device=device), torch.zeros(shape, dtype=dtype, device=device))
        for _ in network.layers
    ]
