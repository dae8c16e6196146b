"""When each token of a text begins: attention to the audio, and the path through it ("dynamic time warping").

As `find_alignment` of openai-whisper (`timing.py`) and CTranslate2. Shapes: B windows, H alignment heads,
T tokens, S frames.
"""

from collections.abc import Sequence
from functools import partial

import torch

from workers.whisper.torch.decoder import KeysAndValues, part_of, prefill
from workers.whisper.torch.graphs import GraphRecorder
from workers.whisper.torch.network import Network

Tensor = torch.Tensor

ALIGNED_TOKENS = 232  # most: start, no timestamps, text, end; a multiple of 8
_ROWS = (64, 128)  # of the search for a path, if they are enough
_MEDIAN_FRAMES = 7
# Exchanges that put the median of seven values into the middle (Devillard 1998, "Fast median search").
_EXCHANGES = "05 03 16 24 01 35 26 23 36 45 14 13 34"


class Aligner:
    """Aligns the texts of batches of one shape. Its tensors stay where they are, so a GPU can record it."""

    def __init__(
        self,
        network: Network,
        audio: KeysAndValues,
        heads: Sequence[tuple[int, int]],
        eot: int,
        at_once: int,
        recorder: GraphRecorder,
    ) -> None:
        """For batches of as many windows as `audio` has, a multiple of those whose attention is computed at
        once. `heads`: layer and head, as the model's files name them."""
        windows, _, frames, _ = audio[0][0].shape
        self._network, self._audio, self._heads, self._eot = network, audio, heads, eot
        self._at_once, self._recorder = at_once, recorder
        self._lengths = torch.ones(windows, dtype=torch.int64, device=network.embeddings.device)
        self._frames = self._lengths.clone()
        self._tokens = self._lengths.new_full((windows, ALIGNED_TOKENS), eot)
        self._starts = self._tokens.clone()
        self._probabilities = torch.zeros_like(self._tokens, dtype=torch.float32)
        self._costs = self._probabilities.new_zeros((windows, ALIGNED_TOKENS, frames))

    def __call__(
        self, sequences: Sequence[Sequence[int]], frames: Sequence[int], first: int
    ) -> tuple[list[list[int]], list[list[float]]]:
        """At which frame each token begins, and how probable it is; from token `first` on.

        `sequences`: all tokens of each window's text; none if it has no text. `frames`: of its audio.
        """
        fill = len(self._lengths) - len(sequences)
        rows = [[*tokens, *[self._eot] * (ALIGNED_TOKENS - len(tokens))] for tokens in sequences]
        lengths = [max(first + 2, len(tokens)) for tokens in sequences]
        self._tokens[: len(rows)] = torch.tensor(rows, device=self._tokens.device)
        self._lengths.copy_(torch.tensor([*lengths, *[first + 2] * fill]))
        self._frames.copy_(torch.tensor([*frames, *[1] * fill]).clamp(1, self._costs.shape[-1]))
        # A batch may have two windows of a live stream alone.
        for begin in range(0, len(sequences), self._at_once):
            if any(sequences[begin : begin + self._at_once]):
                self._recorder.run((self, begin), partial(self._attend, begin))
        needed = max(lengths) - first - 1
        most = next((rows for rows in _ROWS if needed <= rows), ALIGNED_TOKENS - first)
        self._recorder.run((self, first, most), partial(self._find_starts, first, most))
        return self._starts[:, :needed].tolist(), self._probabilities[:, first : first + needed].tolist()

    def _attend(self, begin: int) -> None:
        """The costs of each token at each frame, and its probability among all text tokens."""
        part = slice(begin, begin + self._at_once)
        tokens = self._tokens[part]
        audio = part_of(self._audio, part, self._costs.shape[-1])
        looks, x = attention_to_audio(self._network, audio, tokens, self._heads)
        self._costs[part] = alignment_costs(looks, self._lengths[part], self._frames[part])
        logits = self._network.logits(x)
        logits[..., self._eot :] = -torch.inf
        own = tokens.roll(-1, 1).clamp(max=self._eot - 1)[..., None]
        logprobs = logits.log_softmax(-1, dtype=torch.float32).gather(-1, own)
        self._probabilities[part] = logprobs[..., 0].exp()

    def _find_starts(self, first: int, most: int) -> None:
        costs = self._costs[:, first : first + most]
        self._starts[:, :most] = first_frames(costs, self._lengths - first - 1, self._frames)


def attention_to_audio(
    network: Network, audio: KeysAndValues, tokens: Tensor, heads: Sequence[tuple[int, int]]
) -> tuple[Tensor, Tensor]:
    """How much each token (B, T) looks at each frame, in logits (B, H, T, S), and the decoder's output."""
    queries: list[Tensor] = []
    x = prefill(network, audio, tokens, queries=queries)
    looks = []
    # CTranslate2 takes the heads layer by layer.
    for layer, head in sorted(heads, key=lambda head: head[0]):
        query, (keys, _) = queries[layer][:, head], audio[layer]
        logits = query @ keys[:, head].transpose(1, 2)
        looks.append(logits.float() * query.shape[-1] ** -0.5)
    return torch.stack(looks, 1), x


def alignment_costs(looks: Tensor, lengths: Tensor, frames: Tensor) -> Tensor:
    """The cost of each token at each frame: (B, T, S), from logits (B, H, T, S).

    `lengths` (B,): tokens of each window that count. `frames` (B,): of its audio; later ones cost anything.
    """
    number = lengths[:, None, None, None]
    exists = torch.arange(looks.shape[-1], device=looks.device) < frames[:, None, None, None]
    weights = looks.masked_fill(~exists, -torch.inf).softmax(-1)
    counts = torch.arange(looks.shape[-2], device=looks.device)[:, None] < number
    mean = (weights * counts).sum(-2, keepdim=True) / number
    deviation = (((weights - mean) * counts) ** 2).sum(-2, keepdim=True) / number
    # Frames behind the audio deviate by nothing.
    normal = (weights - mean) / deviation.sqrt().clamp(min=torch.finfo(deviation.dtype).tiny)
    return -_median(normal, frames).mean(1)


def _median(x: Tensor, frames: Tensor) -> Tensor:
    """The median of `_MEDIAN_FRAMES` frames around each, mirrored at both ends of the window's audio."""
    reach = _MEDIAN_FRAMES // 2
    count, last = x.shape[-1], frames[:, None] - 1
    read = torch.arange(-reach, count + reach, device=x.device).abs().expand(len(frames), -1)
    read = torch.where(read > last, 2 * last - read, read).clamp(min=0, max=count - 1)
    mirrored = x.gather(-1, read[:, None, None].expand(*x.shape[:-1], -1))
    around = [mirrored[..., offset : offset + count] for offset in range(_MEDIAN_FRAMES)]
    for low, high in (map(int, pair) for pair in _EXCHANGES.split()):
        lower, upper = around[low], around[high]
        around[low], around[high] = torch.minimum(lower, upper), torch.maximum(lower, upper)
    return torch.where((frames <= reach)[:, None, None, None], x, around[reach])


def first_frames(costs: Tensor, rows: Tensor, frames: Tensor) -> Tensor:
    """At which frame each token begins (B, T), on the cheapest path from the first to the last.

    `costs` (B, T, S); `rows` and `frames` (B,): how many tokens and frames of each window count. A path goes
    to the next token, to the next frame, or to both. Row by row: the path to a frame comes along the row from
    the frame where it has entered it, so with c the costs of a row, the costs of its paths are
    `cumsum(c) + cummin(min(up, diagonal) - cumsum(c before))`.
    """
    windows, most, _ = costs.shape
    costs = costs.double()
    along = costs.cumsum(2)
    before = along - costs
    # With a row above the first one, and a frame before the first one: a path begins there.
    total = costs.new_full((most + 1, windows, costs.shape[2] + 1), torch.inf)
    total[0, :, 0] = 0
    up, diagonal, left = total[:-1, :, 1:], total[:-1, :, :-1], total[1:, :, :-1]
    above = zip(up, diagonal, before.unbind(1), along.unbind(1), total[1:, :, 1:], strict=True)
    for up_, diagonal_, before_, along_, total_ in above:
        torch.add(along_, (torch.minimum(up_, diagonal_) - before_).cummin(1).values, out=total_)
    diagonally = (diagonal < up) & (diagonal < left)
    entered = diagonally | ((up < diagonal) & (up < left))
    places = torch.arange(costs.shape[2], device=costs.device)
    first = torch.where(entered, places, 0).cummax(2).values  # where a path in the row has entered it
    before_first = (first - diagonally.gather(2, first).long()).clamp(min=0)  # and where it was before
    counts = torch.arange(most, device=costs.device)[:, None] < rows
    came_from = torch.where(counts[..., None], before_first, places)
    at = [frames[:, None] - 1]
    for of_row in reversed(came_from.unbind(0)[1:]):
        at.append(of_row.gather(1, at[-1]))
    return first.gather(2, torch.stack(at[::-1]))[..., 0].T
