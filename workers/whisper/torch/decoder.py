"""The decoder with its memory: what it has seen of the prompt, of each beam's text and of the audio.

Keys and values never move. Those of all beams of a window are one set, and a mask says which of them are in
the text of a beam. The prompt's stand there once, and the audio's once for all beams, which are positions of
the query. Shapes: B windows, K beams, H heads, P places for the prompt, N most tokens of a text.
"""

from collections.abc import Iterable, Sequence
from functools import partial

import torch

from workers.whisper.backend import MAX_TOKENS, Search
from workers.whisper.torch.graphs import GraphRecorder
from workers.whisper.torch.network import Network
from workers.whisper.torch.search import MAX_NEW_TOKENS, Texts, advance
from workers.whisper.torch.token_rules import TokenRules

Tensor = torch.Tensor
KeysAndValues = list[tuple[Tensor, Tensor]]  # of each layer
LayerByLayer = Iterable[tuple[Tensor, Tensor]]  # the same, not all at once

# Places for a prompt: those of a task alone, and of all the text that may come before it.
PROMPT_PLACES = (8, 232)
_TEXT_PLACES = (56, 112, MAX_NEW_TOKENS)  # of each beam: a step looks no further than it must


def prompt_places(tokens: int) -> int:
    """How many places a prompt of so many tokens gets."""
    return next(places for places in PROMPT_PLACES if tokens <= places)


def reserve(network: Network, windows: int, places: int) -> KeysAndValues:
    """Memory for keys and values of so many windows."""
    zeros = partial(network.embeddings.new_zeros, (windows, network.heads, places, network.head_width))
    return [(zeros(), zeros()) for _ in network.layers]


def remember(network: Network, encoded: Tensor, audio: KeysAndValues, first: int) -> None:
    """Write what the decoder's layers see of the encoder's output (B, S, D), from window `first` on."""
    rows, frames = encoded.shape[:2]
    for layer, of_layer in zip(network.layers, audio, strict=True):
        for stored, new in zip(of_layer, network.keys_of_audio(layer, encoded), strict=True):
            stored[first : first + rows, :, :frames] = new


def part_of(audio: KeysAndValues, windows: slice, frames: int) -> KeysAndValues:
    """What is remembered of some windows, whose context has so many frames."""
    return [(keys[windows, :, :frames], values[windows, :, :frames]) for keys, values in audio]


def prefill(
    network: Network,
    audio: LayerByLayer,
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
    for number, (layer, seen) in enumerate(zip(network.layers, audio, strict=True)):
        query, key, value = network.queries(f"{layer}/self_attention", x)
        if memory is not None:
            keys, values = memory[number]
            keys[:, :, : key.shape[2]], values[:, :, : key.shape[2]] = key, value
        x = network.attend(f"{layer}/self_attention", x, query, key, value, causal=True)
        [query] = network.queries(f"{layer}/attention", x)
        if queries is not None:
            queries.append(query)
        x = network.attend(f"{layer}/attention", x, query, *seen)
        x = network.feed_forward(layer, x)
    return x


class Decoder:
    """Decodes batches of one shape: after each `step`, every text has a token more.

    Its tensors stay where they are, so a GPU can record steps.
    """

    def __init__(
        self,
        network: Network,
        audio: KeysAndValues,
        rules: TokenRules,
        beams: int,
        places: int,
        memory: KeysAndValues,
        recorder: GraphRecorder,
    ) -> None:
        """For batches of as many windows as `audio` has, with `places` for prompts.

        `memory` is used for keys and values if it is large enough, whatever its shape.
        """
        windows = len(audio[0][0])
        self._network, self._audio, self._rules, self._beams = network, audio, rules, beams
        self._recorder = recorder
        self._memory = _shaped(memory, network, windows, places + MAX_NEW_TOKENS * beams)
        self._prompts = torch.zeros((windows, places), dtype=torch.int64, device=network.embeddings.device)
        self._lengths = self._prompts.new_ones(windows)
        self._asked = self._lengths.clone()
        self._behind_prompt = self._prompts.bool()
        self.no_speech = network.embeddings.new_zeros(windows, dtype=torch.float32)
        self.texts = Texts(windows, beams, self._lengths.device)

    def begin(
        self,
        prompts: Sequence[Sequence[int]],
        asked: Sequence[int],
        hashes: Sequence[int],
        search: Search,
    ) -> None:
        """Read the prompts of a batch, and choose the first token of each text.

        The batch may be smaller than the shape. `no_speech` (B,) becomes the probability of that token behind
        the place of each prompt that is `asked` for. `hashes`: of the windows' audio.
        """
        windows, places = self._prompts.shape
        fill = windows - len(prompts)
        rows = [[*prompt, *[0] * (places - len(prompt))] for prompt in [*prompts, *[()] * fill]]
        lengths = [*map(len, prompts), *[1] * fill]
        self._prompts.copy_(torch.tensor(rows))
        self._lengths.copy_(torch.tensor(lengths))
        self._asked.copy_(torch.tensor([*asked, *[0] * fill]))
        limits = [min(MAX_NEW_TOKENS, MAX_TOKENS - length + 1) for length in lengths]
        self.texts.begin(limits, hashes, search, self._rules)
        self._run(search, 0)

    def step(self, search: Search, number: int) -> None:
        """Read the last token of each text and choose the next one. `number`: from 1 on."""
        self._run(search, next(most for most in _TEXT_PLACES if number <= most))

    def _run(self, search: Search, most: int) -> None:
        """Read the prompts (0), or a step with so many places for the text of each beam."""
        compute = partial(self._compute_step, search, most) if most else partial(self._read_prompts, search)
        if search == Search(self._beams):
            self._recorder.run((self, most), compute)
        else:  # unusual
            compute()

    def _read_prompts(self, search: Search) -> None:
        places = torch.arange(self._prompts.shape[1], device=self._lengths.device)
        self._behind_prompt.copy_(places >= self._lengths[:, None])
        for keys, values in self._memory:
            keys.zero_(), values.zero_()
        x = prefill(self._network, self._audio, self._prompts, self._memory)
        both = torch.stack([self._asked, self._lengths - 1], 1)
        logits = self._network.logits(x.gather(1, both[..., None].expand(-1, -1, x.shape[-1])))
        self.no_speech.copy_(logits[:, 0].softmax(-1, dtype=torch.float32)[:, self._rules.no_speech])
        behind = logits[:, 1:].expand(-1, self._beams, -1)
        advance(self.texts, behind, self._rules, search, first=True)

    def _compute_step(self, search: Search, most: int) -> None:
        texts, network = self.texts, self._network
        position = (self._lengths + texts.step - 1).clamp(max=MAX_TOKENS - 1)
        beams = torch.arange(self._beams, device=position.device)
        places = self._prompts.shape[1] + (texts.step - 1) * self._beams + beams
        behind_prompt = self._behind_prompt[:, None].expand(-1, self._beams, -1)
        of_others = (texts.history[:, :, 1, :most, None] != beams).flatten(2)
        hidden = torch.cat([behind_prompt, of_others], -1)[:, None]
        bias = torch.zeros_like(hidden, dtype=network.embeddings.dtype).masked_fill_(hidden, -torch.inf)
        x = network.embed(texts.last, position[:, None].expand_as(texts.last))
        for layer, memory, seen in zip(network.layers, self._memory, self._audio, strict=True):
            keys, values = (stored[:, :, : hidden.shape[-1]] for stored in memory)
            query, key, value = network.queries(f"{layer}/self_attention", x)
            keys.index_copy_(2, places, key)
            values.index_copy_(2, places, value)
            x = network.attend(f"{layer}/self_attention", x, query, keys, values, bias=bias)
            [query] = network.queries(f"{layer}/attention", x)
            x = network.attend(f"{layer}/attention", x, query, *seen)
            x = network.feed_forward(layer, x)
        advance(texts, network.logits(x), self._rules, search)


def _shaped(memory: KeysAndValues, network: Network, windows: int, places: int) -> KeysAndValues:
    """The memory in the shape of a batch; other memory if it is too small."""
    size = windows * places * network.width
    if size > memory[0][0].numel():
        return reserve(network, windows, places)
    shape = (windows, network.heads, places, network.head_width)
    return [
        (keys.flatten()[:size].view(shape), values.flatten()[:size].view(shape)) for keys, values in memory
    ]
