"""Which tokens may come next: the rules of Whisper's timestamps, as CTranslate2 applies them.

Everything is a tensor of fixed shape, so a GPU can record it. Shapes: B windows, K texts of each, V tokens.
"""

from dataclasses import dataclass

import torch

from workers.whisper.backend import SpecialTokens

Tensor = torch.Tensor

MAX_INITIAL_TIMESTAMP = 50  # in steps of 20 ms: a text begins within the first second


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for one model."""

    tokens: Tensor  # (V,): 0 to V - 1
    never: Tensor  # (V,): never in a text
    not_first: Tensor  # (V,): not the first token
    eot: int
    first_timestamp: int

    @classmethod
    def of(cls, special: SpecialTokens, not_first: list[int], vocabulary: int, device: str) -> "Rules":
        """`not_first`: tokens that begin no text, which the model's files name."""
        tokens = torch.arange(vocabulary, device=device)
        never = torch.zeros(vocabulary, dtype=torch.bool)
        never[[*special.suppressed, special.no_timestamps]] = True
        first_timestamp = special.no_timestamps + 1
        first = never.clone()
        first[not_first] = True
        first[:first_timestamp] = True
        first[first_timestamp + MAX_INITIAL_TIMESTAMP + 1 :] = True
        return cls(tokens, never.to(device), first.to(device), special.eot, first_timestamp)

    def forbid(self, logits: Tensor, step: Tensor, last: Tensor, before: Tensor, latest: Tensor) -> Tensor:
        """The logits (B, K, V), minus infinity for tokens that may not come next.

        `step`: number of tokens so far. `last` and `before` (B, K): the last two. `latest` (B, K): the last
        timestamp so far; if there is none, the token before that for 0.00 s.
        """
        is_first = step == 0
        timestamp = self.tokens >= self.first_timestamp
        ends_in_timestamp = last >= self.first_timestamp
        in_pair = ends_in_timestamp & ((before >= self.first_timestamp) | (step == 1))
        opens = ends_in_timestamp & ~in_pair  # the next token is a timestamp, or the text ends
        earliest = torch.where(opens, last, latest + 1)
        forbidden = torch.where(is_first, self.not_first, self.never)
        later = ~is_first & (
            (opens[..., None] & (self.tokens < self.eot))
            | (in_pair[..., None] & timestamp)
            | (timestamp & (self.tokens < earliest[..., None]))
        )
        logits = logits.masked_fill(forbidden | later, -torch.inf)
        # If the timestamps together are likelier than any other token, one of them comes.
        likeliest = logits[..., : self.first_timestamp].amax(-1)
        together = logits[..., self.first_timestamp :].logsumexp(-1)
        wins = (together > likeliest) & ~in_pair & ~is_first
        return logits.masked_fill(wins[..., None] & ~timestamp, -torch.inf)

    def forbid_repetition(self, logits: Tensor, step: Tensor, history: Tensor, size: int) -> Tensor:
        """Also forbid tokens that end a run of `size` tokens which the text has already.

        `history`: the tokens so far (B, K, most tokens), of which the first `step` count.
        """
        most = history.shape[-1]
        places = torch.arange(most - size + 1, device=history.device)
        repeats = (places + size <= step).expand(history.shape[:-1] + places.shape)
        for offset in range(size - 1):
            latest = history.index_select(-1, (step - size + 1 + offset).clamp(min=0).reshape(1))
            repeats = repeats & (history[..., offset : most - size + 1 + offset] == latest)
        # The last column stands for no token.
        ends = torch.where(repeats, history[..., size - 1 :], logits.shape[-1])
        forbidden = torch.zeros(
            (*logits.shape[:-1], logits.shape[-1] + 1), dtype=torch.bool, device=logits.device
        )
        return logits.masked_fill(forbidden.scatter(-1, ends, True)[..., :-1], -torch.inf)


def gumbel_noise(audio: Tensor, samples: int, step: Tensor, tokens: Tensor) -> Tensor:
    """Noise with which the likeliest token is a sample ("Gumbel-max trick"): (B, samples, V).

    A hash of the audio (B,), sample, step and token, so it does not depend on what else is decoded. The
    mixing function is `lowbias32` (Wellons 2018, "Prospecting for Hash Functions").
    """
    sample = torch.arange(samples, device=audio.device)
    seed = _mix(_mix(_mix(audio)[:, None] ^ sample) ^ step)
    mixed = _mix(seed[..., None] ^ tokens)
    uniform = ((mixed >> 9).float() + 0.5) / (1 << 23)  # exact in float32, and neither 0 nor 1
    return -torch.log(-torch.log(uniform))


def _mix(x: Tensor) -> Tensor:
    """A hash of each 32-bit number, in int64."""
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
    x = ((x ^ (x >> 15)) * 0x846CA68B) & 0xFFFFFFFF
    return x ^ (x >> 16)
