"""When each token of a text begins: attention to the audio, and the path through it ("dynamic time warping").

As `find_alignment` of openai-whisper (`timing.py`) and CTranslate2. Shapes: B windows, H alignment heads,
T tokens, S frames.
"""

from collections.abc import Sequence

import torch

from workers.whisper.torch.decoder import Audio, prefill
from workers.whisper.torch.network import AUDIO_FRAMES, Network

Tensor = torch.Tensor

_MEDIAN_FRAMES = 7


def attention_to_audio(
    network: Network, audio: Audio, tokens: Tensor, heads: Sequence[tuple[int, int]]
) -> tuple[Tensor, Tensor]:
    """How much each token (B, T) looks at each frame, in logits (B, H, T, S), and the decoder's output.

    `heads`: layer and head, as the model's files name them.
    """
    queries: list[Tensor] = []
    x = prefill(network, audio, tokens, queries=queries)
    looks = []
    # CTranslate2 takes the heads layer by layer.
    for layer, head in sorted(heads, key=lambda head: head[0]):
        query, (keys, _) = queries[layer][:, head], audio.memory[layer]
        logits = query @ keys[:, head, :AUDIO_FRAMES].transpose(1, 2)
        looks.append(logits.float() * query.shape[-1] ** -0.5)
    return torch.stack(looks, 1), x


def alignment_costs(looks: Tensor, lengths: Sequence[int], frames: Sequence[int]) -> Tensor:
    """The cost of each token at each frame: (B, T, S), from logits (B, H, T, S).

    `lengths`: tokens of each window that count. `frames`: of its audio; later ones cost anything.
    """
    number = torch.tensor(lengths, device=looks.device)[:, None, None, None]
    known = torch.tensor(frames, device=looks.device).clamp(min=1)
    exists = torch.arange(looks.shape[-1], device=looks.device) < known[:, None, None, None]
    weights = looks.masked_fill(~exists, -torch.inf).softmax(-1)
    counts = torch.arange(looks.shape[-2], device=looks.device)[:, None] < number
    mean = (weights * counts).sum(-2, keepdim=True) / number
    deviation = (((weights - mean) * counts) ** 2).sum(-2, keepdim=True) / number
    # Frames behind the audio deviate by nothing.
    normal = (weights - mean) / deviation.sqrt().clamp(min=torch.finfo(deviation.dtype).tiny)
    return -_median(normal, known).mean(1)


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


def first_frames(costs: Tensor, rows: Sequence[int], frames: Sequence[int]) -> list[list[int]]:
    """At which frame each token begins, on the cheapest path from the first to the last.

    `costs` (B, T, S); `rows` and `frames`: how many tokens and frames of each window count. A path goes to
    the next token, to the next frame, or to both. Row by row: the path to a frame comes along the row from
    the frame where it has entered it, so with c the costs of a row, the costs of its paths are
    `cumsum(c) + cummin(min(up, diagonal) - cumsum(c before))`.
    """
    most = max(rows)  # later rows change no earlier one
    costs = costs[:, :most].double()
    along = costs.cumsum(2)
    before = along - costs
    # With a row above the first one, and a frame before the first one: a path begins there.
    total = costs.new_full((len(rows), most + 1, costs.shape[2] + 1), torch.inf)
    total[:, 0, 0] = 0
    for row in range(most):
        above = torch.minimum(total[:, row, 1:], total[:, row, :-1])
        total[:, row + 1, 1:] = along[:, row] + (above - before[:, row]).cummin(1).values
    up, diagonal, left = total[:, :-1, 1:], total[:, :-1, :-1], total[:, 1:, :-1]
    diagonally = (diagonal < up) & (diagonal < left)
    entered = diagonally | ((up < diagonal) & (up < left))
    places = torch.arange(costs.shape[2], device=costs.device)
    first = torch.where(entered, places, 0).cummax(2).values  # where a path in the row has entered it
    before_first = (first - diagonally.gather(2, first).long()).clamp(min=0)  # and where it was before
    counts = torch.arange(most, device=costs.device) < torch.tensor(rows, device=costs.device)[:, None]
    at = torch.tensor(frames, device=costs.device)[:, None] - 1
    starts = []
    for row in range(most - 1, -1, -1):
        starts.append(first[:, row].gather(1, at))
        at = torch.where(counts[:, row, None], before_first[:, row].gather(1, at), at)
    found: list[list[int]] = torch.cat(starts[::-1], 1).tolist()
    return [of_window[:count] for of_window, count in zip(found, rows, strict=True)]
