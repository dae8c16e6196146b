"""Which tokens may come next: the rules of Whisper's timestamps, as CTranslate2 applies them.

Everything is a tensor of fixed shape, so a GPU can record it. Shapes: B windows, K texts of each, V tokens.
"""

import torch

from workers.whisper.backend import MAX_INITIAL_TIMESTAMP, SpecialTokens

Tensor = torch.Tensor


class TokenRules:
    """The rules for one model."""

    def __init__(self, special: SpecialTokens, not_first: list[int], vocabulary: int, device: str) -> None:
        """`not_first`: tokens that begin no text, which the model's files name."""
        self.eot, self.no_speech = special.eot, special.no_speech
        self.first_timestamp = special.no_timestamps + 1
        never = torch.zeros(vocabulary)
        never[[*special.suppressed, special.no_timestamps]] = -torch.inf
        first = never.clone()
        first[not_first] = -torch.inf
        first[: self.first_timestamp] = -torch.inf
        first[self.first_timestamp + MAX_INITIAL_TIMESTAMP + 1 :] = -torch.inf
        self.never = never.to(device)  # (V,): minus infinity for tokens that are never in a text, else 0
        self.not_first = first.to(device)  # (V,): so for the first token
        # Their tokens, and what fills up the vocabulary behind them.
        self.timestamps = torch.arange(self.first_timestamp, vocabulary, device=device)

    def forbid(self, logits: Tensor, last: Tensor, before: Tensor, latest: Tensor, *, first: bool) -> Tensor:
        """The logits (B, K, V) in float32, minus infinity for tokens that may not come next.

        `last` and `before` (B, K): the last two tokens; a timestamp in place of one that is not there.
        `latest` (B, K): the last timestamp; if there is none, the token before that for 0.00 s. `first`: no
        text has a token.
        """
        if first:
            return logits + self.not_first
        # All that follows changes this copy: each pass over a vocabulary counts.
        logits = logits + self.never
        others = logits[..., self.eot : self.first_timestamp]
        timestamps = logits[..., self.first_timestamp :]
        ends_in_timestamp = last >= self.first_timestamp
        in_pair = ends_in_timestamp & (before >= self.first_timestamp)
        opens = ends_in_timestamp & ~in_pair  # the next token is a timestamp, or the text ends
        earliest = torch.where(opens, last, latest + 1)
        timestamps.masked_fill_(in_pair[..., None] | (self.timestamps < earliest[..., None]), -torch.inf)
        likeliest = torch.where(opens, others.amax(-1), logits[..., : self.first_timestamp].amax(-1))
        # If the timestamps together are likelier than any other token, one of them comes.
        wins = timestamps.logsumexp(-1) > likeliest
        logits[..., : self.eot].masked_fill_((opens | wins)[..., None], -torch.inf)
        others.masked_fill_(wins[..., None], -torch.inf)
        return logits

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


def gumbel_noise(audio: Tensor, samples: int, step: Tensor, vocabulary: int) -> Tensor:
    """Noise with which the likeliest token is a sample ("Gumbel-max trick"): (B, samples, V).

    A hash of the audio (B,), sample, step and token, so it does not depend on what else is decoded. The
    mixing function is `lowbias32` (Wellons 2018, "Prospecting for Hash Functions").
    """
    sample = torch.arange(samples, device=audio.device)
    seed = _mix(_mix(_mix(audio)[:, None] ^ sample) ^ step)
    mixed = _mix(seed[..., None] ^ torch.arange(vocabulary, device=audio.device))
    uniform = ((mixed >> 9).float() + 0.5) / (1 << 23)  # exact in float32, and neither 0 nor 1
    return -torch.log(-torch.log(uniform))


def _mix(x: Tensor) -> Tensor:
    """A hash of each 32-bit number, in int64."""
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
    x = ((x ^ (x >> 15)) * 0x846CA68B) & 0xFFFFFFFF
    return x ^ (x >> 16)
