"""When each token of a text begins: attention to the audio, and the path through it ("dynamic time warping").

As `find_alignment` of openai-whisper (`timing.py`) and CTranslate2. Shapes: B windows, H alignment heads,
T tokens, S frames.
"""

from collections.abc import Sequence

import torch

from workers.whisper.torch.decoder import Audio
from workers.whisper.torch.network import AUDIO_FRAMES, Network

Tensor = torch.Tensor

_MEDIAN_FRAMES = 7


def attention_to_audio(
    network: Network, audio: Audio, tokens: Tensor, heads: Sequence[tuple[int, int]]
) -> tuple[Tensor, Tensor]:
    """How much each token (B, T) looks at each frame, in logits (B, H, T, S), and the decoder's output.

    `heads`: layer and head, as the model's files name them.
    """
    positions = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
    x = network.embed(tokens, positions)
    looks: dict[tuple[int, int], Tensor] = {}
    for number, (layer, (keys, values)) in enumerate(zip(network.layers, audio.memory, strict=True)):
        x = layer.text.attend(x, *layer.text.queries(x), causal=True)
        [query] = layer.audio.queries(x)
        for head in {head for of_layer, head in heads if of_layer == number}:
            logits = query[:, head] @ keys[:, head, :AUDIO_FRAMES].transpose(1, 2)
            looks[number, head] = logits.float() * query.shape[-1] ** -0.5
        x = layer.feed_forward(layer.audio.attend(x, query, keys, values, audio.bias))
    # CTranslate2 takes the heads layer by layer.
    return torch.stack([looks[head] for head in sorted(heads, key=lambda head: head[0])], 1), x


def alignment_costs(looks: Tensor, lengths: Tensor, frames: Tensor) -> Tensor:
    """The cost of each token at each frame: (B, T, S), from logits (B, H, T, S).

    `lengths` (B,): tokens that count. `frames` (B,): of the window's audio; the cost of later ones has no
    meaning.
    """
    exists = torch.arange(looks.shape[-1], device=looks.device) < frames[:, None, None, None]
    weights = looks.masked_fill(~exists, -torch.inf).softmax(-1)
    counts = (torch.arange(looks.shape[-2], device=looks.device) < lengths[:, None])[:, None, :, None]
    number = lengths[:, None, None, None]
    mean = (weights * counts).sum(-2, keepdim=True) / number
    deviation = (((weights - mean) * counts) ** 2).sum(-2, keepdim=True) / number
    # Frames behind the audio deviate by nothing.
    normal = (weights - mean) / deviation.sqrt().clamp(min=torch.finfo(deviation.dtype).tiny)
    return -_median(normal, frames).mean(1)


def _median(x: Tensor, frames: Tensor) -> Tensor:
    """The median of `_MEDIAN_FRAMES` frames around each, mirrored at both ends of the window's audio."""
    reach = _MEDIAN_FRAMES // 2
    last = frames[:, None] - 1
    places = torch.arange(x.shape[-1], device=x.device)
    around = []
    for offset in range(-reach, reach + 1):
        read = (places + offset).abs().expand(len(frames), -1)
        read = torch.where(read > last, 2 * last - read, read).clamp(min=0)
        around.append(x.gather(-1, read[:, None, None].expand_as(x)))
    # The largest goes to the end again and again, until the median is the last one that is left.
    for end in range(_MEDIAN_FRAMES - 1, reach - 1, -1):
        for place in range(end):
            lower, upper = around[place], around[place + 1]
            around[place], around[place + 1] = torch.minimum(lower, upper), torch.maximum(lower, upper)
    return torch.where((frames <= reach)[:, None, None, None], x, around[reach])


def first_frames(costs: Tensor, rows: Tensor, frames: Tensor) -> Tensor:
    """At which frame each token begins, on the cheapest path from the first to the last: (B, T).

    `costs` (B, T, S); `rows` and `frames` (B,): how many tokens and frames count. A path goes to the next
    token, to the next frame, or to both. Row by row: the path to a frame comes along the row from the frame
    where it has entered it, so with c the costs of a row, the costs of its paths are
    `cumsum(c) + cummin(min(up, diagonal) - cumsum(c before))`. Frames of tokens that do not count are 0.
    """
    costs = costs.double()
    windows, tokens, most = costs.shape
    places = torch.arange(most, device=costs.device)
    infinite = costs.new_full((windows, 1), torch.inf)
    up = costs.new_full((windows, most), torch.inf)
    diagonal = torch.cat([torch.zeros_like(infinite), up[:, 1:]], 1)  # the path begins at the first frame
    entered: list[Tensor] = []  # of each row and frame: the last frame up to it that is entered from above
    diagonally: list[Tensor] = []  # whether it is from the frame before
    for row in range(tokens):
        along = costs[:, row].cumsum(1)
        best = along + (torch.minimum(up, diagonal) - (along - costs[:, row])).cummin(1).values
        left = torch.cat([infinite, best[:, :-1]], 1)
        from_diagonal = (diagonal < up) & (diagonal < left)
        from_above = (up < diagonal) & (up < left)
        entered.append(torch.where(from_diagonal | from_above, places, -1).cummax(1).values)
        diagonally.append(from_diagonal)
        up, diagonal = best, torch.cat([infinite, best[:, :-1]], 1)
    at = frames - 1
    starts = [torch.zeros_like(at)] * tokens
    for row in range(tokens - 1, -1, -1):
        counts = row < rows
        first = entered[row].gather(1, at[:, None])[:, 0].clamp(min=0)
        starts[row] = torch.where(counts, first, 0)
        before = first - diagonally[row].gather(1, first[:, None])[:, 0].long()
        at = torch.where(counts, before.clamp(min=0), at)
    return torch.stack(starts, 1)
