"""The search for the best text of each window: beam search as CTranslate2's, or independent samples.

Whatever depends on the data is a tensor of fixed shape, and nothing is read by the host: a GPU can record a
step once, and play it again. Shapes: B windows, K beams or samples, V tokens, N most tokens of a text.
"""

from collections.abc import Sequence

import torch

from workers.whisper.backend import Search
from workers.whisper.torch.token_rules import TokenRules, gumbel_noise

Tensor = torch.Tensor

MAX_NEW_TOKENS = 224  # of a text


class Texts:
    """The texts of a batch so far. Every batch and every step changes these tensors in place."""

    def __init__(self, windows: int, beams: int, device: torch.device) -> None:
        self.step = torch.zeros((), dtype=torch.int64, device=device)  # tokens that each text has
        self.limit = self.step.new_zeros(windows)  # most tokens of a text
        self.audio = self.step.new_zeros(windows)  # a hash of the window's audio
        self.last = self.step.new_zeros(windows, beams)  # the last token of each text, and the one before
        self.before = self.last.clone()
        self.latest = self.last.clone()  # the last timestamp
        # (B, K, 2, N): all tokens, and of each, which beam's text it was appended to.
        self.history = self.step.new_zeros(windows, beams, 2, MAX_NEW_TOKENS)
        self.scores = self.last.float()  # log-probability
        self.finished = self.step.new_zeros(windows)  # how many texts have ended
        self.best = self.step.new_zeros(windows, MAX_NEW_TOKENS)  # the best of these
        self.best_score = self.finished.float()
        self.best_length = self.finished.clone()
        self.done = self.finished.bool()  # no other text can become the best

    def begin(self, limits: Sequence[int], hashes: Sequence[int], search: Search, rules: TokenRules) -> None:
        """Texts without tokens. Windows without a hash only fill the batch."""
        windows = len(limits)
        self.step.zero_()
        self.limit.copy_(torch.tensor(limits))
        self.audio.copy_(torch.tensor([*hashes, *[0] * (windows - len(hashes))]))
        self.last.fill_(rules.first_timestamp)
        self.before.fill_(rules.first_timestamp)
        self.latest.fill_(rules.first_timestamp - 1)
        self.history.fill_(-1)
        self.scores.zero_()
        if search.temperature == 0:
            # All beams would be the same: the first step continues one of them.
            self.scores[:, 1:] = -torch.inf
        self.finished.zero_()
        self.best.zero_()
        self.best_score.fill_(-torch.inf)
        self.best_length.zero_()
        self.done.copy_(torch.arange(windows) >= len(hashes))


def advance(texts: Texts, logits: Tensor, rules: TokenRules, search: Search, *, first: bool = False) -> None:
    """Choose the next token of each text from the logits (B, K, V). `first`: it is their first one."""
    if search.no_repeat_ngram_size:  # before: the likeliest token of the other rules is one that may come
        tokens = texts.history[:, :, 0]
        logits = rules.forbid_repetition(logits, texts.step, tokens, search.no_repeat_ngram_size)
    logits = rules.forbid(logits, texts.last, texts.before, texts.latest, first=first)
    if search.temperature > 0:
        scores, parents, tokens = _samples(texts, logits, search)
    else:
        scores, parents, tokens = _candidates(texts, logits, search.beams)
    beams = search.beams
    best = tokens[:, :beams]
    ends = ((best == rules.eot) | (texts.step + 1 >= texts.limit)[:, None]) & (scores[:, :beams] > -torch.inf)
    _keep_best(texts, scores[:, :beams], parents[:, :beams], best, ends, rules)
    if search.temperature > 0:
        scores = scores.masked_fill(ends, -torch.inf)  # a sample that has ended stays so
        chosen = torch.arange(beams, device=ends.device).expand_as(ends)
    else:
        chosen = _replace(ends, tokens[:, beams:] != rules.eot)
    _continue(texts, scores.gather(1, chosen), parents.gather(1, chosen), tokens.gather(1, chosen), rules)


def _candidates(texts: Texts, logits: Tensor, beams: int) -> tuple[Tensor, Tensor, Tensor]:
    """The 2 x K likeliest continuations of all beams, likeliest first: their scores, beams and tokens.

    Twice the beams: if half of them end, as many go on.
    """
    likeliest, tokens = logits.log_softmax(-1).topk(2 * beams)
    scores, places = (texts.scores[..., None] + likeliest).flatten(1).topk(2 * beams)
    return scores, places // (2 * beams), tokens.flatten(1).gather(1, places)


def _samples(texts: Texts, logits: Tensor, search: Search) -> tuple[Tensor, Tensor, Tensor]:
    """A continuation of each sample."""
    noise = gumbel_noise(texts.audio, search.beams, texts.step, logits.shape[-1])
    tokens = (logits / search.temperature + noise).argmax(-1)
    logprobs = logits.log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
    parents = torch.arange(search.beams, device=tokens.device).expand_as(tokens)
    return texts.scores + logprobs, parents, tokens


def _keep_best(
    texts: Texts, scores: Tensor, parents: Tensor, tokens: Tensor, ends: Tensor, rules: TokenRules
) -> None:
    """Keep the best text that has ended. Its score is divided by its length, without the end of text."""
    length = texts.step + (tokens != rules.eot)
    means = torch.where(ends, scores / length, -torch.inf)
    mean, place = means.max(1)
    better = (mean > texts.best_score) & ~texts.done
    parent, token = (x.gather(1, place[:, None])[:, 0] for x in (parents, tokens))
    history = texts.history[:, :, 0]
    text = history.gather(1, parent[:, None, None].expand(-1, 1, history.shape[-1]))[:, 0]
    text = text.index_copy(1, texts.step.reshape(1), token[:, None])
    texts.best.copy_(torch.where(better[:, None], text, texts.best))
    texts.best_score.copy_(torch.where(better, mean, texts.best_score))
    texts.best_length.copy_(torch.where(better, length.gather(1, place[:, None])[:, 0], texts.best_length))
    texts.finished.add_(ends.sum(1))
    beams = tokens.shape[1]
    texts.done.logical_or_((texts.finished >= beams) | (texts.step + 1 >= texts.limit))


def _replace(ends: Tensor, goes_on: Tensor) -> Tensor:
    """The candidates that become the next beams: those that do not end, and for the others the next best.

    `ends`, `goes_on` (B, K): of the first K candidates, and of the second K. Each beam has one candidate that
    ends, so there are enough others.
    """
    beams = ends.shape[1]
    number = ends.cumsum(1)  # of each that ends, from 1
    matches = goes_on[:, None] & (goes_on.cumsum(1)[:, None] == number[..., None])
    replacement = matches.to(torch.int64).argmax(-1) + beams
    return torch.where(ends, replacement, torch.arange(beams, device=ends.device))


def _continue(texts: Texts, scores: Tensor, parents: Tensor, tokens: Tensor, rules: TokenRules) -> None:
    """Each beam becomes a text that goes on."""

    def of_parents(values: Tensor) -> Tensor:
        index = parents.reshape(*parents.shape, *[1] * (values.dim() - 2))
        return values.gather(1, index.expand(-1, -1, *values.shape[2:]))

    beams = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
    latest = torch.where(tokens >= rules.first_timestamp, tokens, of_parents(texts.latest))
    texts.before.copy_(of_parents(texts.last))
    texts.last.copy_(tokens)
    texts.latest.copy_(latest)
    texts.scores.copy_(scores)
    texts.history.copy_(of_parents(texts.history))
    texts.history.index_copy_(3, texts.step.reshape(1), torch.stack([tokens, beams], -1)[..., None])
    texts.step.add_(1)
