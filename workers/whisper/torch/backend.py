"""The backend that computes with torch. Its search gives CTranslate2's texts.

A window's result depends on itself alone: shapes follow from its context, its beams, the places for its
prompt and the batch size of the settings, never from the other windows. So batches are filled up.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import torch

from workers.messages import FULL_CONTEXT_S, SAMPLE_RATE, LoadOptions
from workers.whisper.backend import (
    FRAMES_PER_SECOND,
    MAX_TOKENS,
    Alignment,
    Generated,
    Search,
    SpecialTokens,
    TextToAlign,
)
from workers.whisper.model_check import read_vocabulary
from workers.whisper.torch.decoder import (
    PROMPT_PLACES,
    Audio,
    Decoding,
    audio_memory,
    prefill,
    prompt_places,
    remember,
)
from workers.whisper.torch.features import Spectrograms, padded
from workers.whisper.torch.network import AUDIO_FRAMES, PADDED_FRAMES, Network
from workers.whisper.torch.rules import Rules
from workers.whisper.torch.search import MAX_NEW_TOKENS
from workers.whisper.torch.weights import read_weights
from workers.whisper.torch.word_times import alignment_costs, attention_to_audio, first_frames

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

P = ParamSpec("P")
R = TypeVar("R")

_USUAL_BEAMS = 5
_ENCODED_AT_ONCE = 4  # windows; so many keep a GPU busy, and short drafts do not wait for more
_STEPS_BETWEEN_LOOKS = {"cpu": 1, "cuda": 8}  # the device waits while the host looks whether all are done
_ALIGNED_TOKENS = 232  # most: start, no timestamps, text, end; a multiple of 8
_FREE_SHARE = 0.95  # of a GPU's free memory, that a model and its batches may take


# Copies of what the search and the alignment compute with, that exist at the same time.
_LOGITS_COPIES, _MEDIAN_COPIES = 6, 14


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A window before it is encoded."""

    samples: "npt.NDArray[np.int16]"
    hash: int
    context_s: int


@dataclass(frozen=True, slots=True)
class _Encoded:
    """Windows in the decoder's memory."""

    audio: Audio
    hashes: list[int]  # of each window


def _computes(function: Callable[P, R]) -> Callable[P, R]:
    """Without gradients, and with errors that a process without torch can read."""

    @wraps(function)
    def compute(*args: P.args, **kwargs: P.kwargs) -> R:
        with torch.inference_mode(), _readable_errors():
            return function(*args, **kwargs)

    return compute


@contextmanager
def _readable_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "torch":
            raise
        raise RuntimeError(str(error)) from None


class TorchBackend:
    """A model in torch, and its memory."""

    threads = 1

    @_computes
    def __init__(self, options: LoadOptions, compute_type: str, tokens: SpecialTokens) -> None:
        """Load the model, and take memory for batches: smaller ones if a GPU has less.

        Raises RuntimeError if a GPU has no memory for one window.
        """
        folder, self._device = Path(options.path), options.device
        if options.device == "cpu":
            torch.set_num_threads(options.cpu_threads)
        self.compute_type, self._tokens = compute_type, tokens
        self._dtype = getattr(torch, compute_type)
        config = json.loads((folder / "config.json").read_text("utf-8"))
        weights, scalars = read_weights(folder / "model.bin", self._device, self._dtype)
        heads = (scalars["encoder/num_heads"], scalars["decoder/num_heads"])
        self._network = Network(weights, heads)
        vocabulary = read_vocabulary(folder)
        self.multilingual = "" in vocabulary  # as CTranslate2 knows it
        self._languages = {token: vocabulary[token][2:-2] for token in config["lang_ids"]}
        self._alignment_heads = [(layer, head) for layer, head in config.get("alignment_heads") or ()]
        not_first = config["suppress_ids_begin"]
        self._rules = Rules.of(tokens, not_first, self._network.vocabulary, self._device)
        self._spectrograms = Spectrograms(self._network.mel_bins, self._device)
        self.batch_size = self._fitting(options.batch_size) if self._device == "cuda" else options.batch_size
        self._audio = audio_memory(self._network, self.batch_size, self._device, self._dtype)
        if self._device == "cuda":
            self._take_memory()

    def divide(self, prompt_tokens: Sequence[int], beams: int) -> list[list[int]]:
        """Windows whose prompts have as many places, in batches."""
        places: dict[int, list[int]] = {}
        for place, tokens in enumerate(prompt_tokens):
            places.setdefault(prompt_places(tokens), []).append(place)
        most = self._windows(beams)
        return [
            group[first : first + most] for group in places.values() for first in range(0, len(group), most)
        ]

    def _windows(self, beams: int) -> int:
        """How many windows a batch with so many beams has, those that only fill it among them."""
        return max(1, min(self.batch_size, self.batch_size * _USUAL_BEAMS // beams))

    def prepare(self, audio: Sequence[bytes], context_s: int) -> list[_Prepared]:
        """The samples, and a hash of them for samples of the texts."""
        return [_Prepared(padded(pcm), zlib.crc32(pcm), context_s) for pcm in audio]

    @_computes
    def encode(self, prepared: Sequence[_Prepared]) -> _Encoded:
        """The windows in the decoder's memory, until the next ones are encoded."""
        context_s = prepared[0].context_s
        at_once = min(_ENCODED_AT_ONCE, self.batch_size)
        for first in range(0, len(prepared), at_once):
            windows = [window.samples for window in prepared[first : first + at_once]]
            windows += [windows[0]] * (at_once - len(windows))
            features = self._spectrograms(windows, context_s).to(self._dtype)
            encoded = self._network.encode(features)[: self.batch_size - first]
            remember(self._network, encoded, self._audio, first)
        frames = context_s * FRAMES_PER_SECOND
        bias = torch.zeros((1, 1, 1, PADDED_FRAMES), dtype=self._dtype, device=self._device)
        bias[..., frames:] = -torch.inf
        return _Encoded(Audio(self._audio, bias), [window.hash for window in prepared])

    @_computes
    def detect_language(self, encoded: _Encoded) -> list[list[tuple[str, float]]]:
        """The languages of each window."""
        start = torch.full((self.batch_size, 1), self._tokens.sot, device=self._device)
        logits = self._network.logits(prefill(self._network, encoded.audio, start)[:, 0])
        probabilities = logits[: len(encoded.hashes), list(self._languages)].softmax(-1)
        return [list(zip(self._languages.values(), row, strict=True)) for row in probabilities.tolist()]

    @_computes
    def generate(
        self, encoded: _Encoded, prompts: Sequence[Sequence[int]], search: Search
    ) -> list[Generated]:
        """The best text of each window."""
        windows = self._windows(search.beams)
        decoding = Decoding(
            self._network,
            encoded.audio.rows(0, windows),
            self._rules,
            search,
            prompts,
            encoded.hashes,
            windows,
        )
        at_start = decoding.begin(prompts[0].index(self._tokens.sot))
        texts = decoding.texts
        for step in range(1, MAX_NEW_TOKENS):
            if step % _STEPS_BETWEEN_LOOKS[self._device] == 0 and bool(texts.done.all()):
                break
            decoding.step()
        no_speech = at_start.softmax(-1)[:, self._tokens.no_speech]
        found = zip(
            texts.best.tolist(),
            texts.best_length.tolist(),
            texts.best_score.tolist(),
            no_speech.tolist(),
            strict=True,
        )
        return [
            Generated(tuple(tokens[:length]), score, probability)
            for tokens, length, score, probability in list(found)[: len(prompts)]
        ]

    @_computes
    def align(
        self, encoded: _Encoded, texts: Sequence[TextToAlign | None]
    ) -> list[Alignment | Exception | None]:
        """The times of each window's text."""
        at_once = min(_ENCODED_AT_ONCE, self.batch_size)
        aligned: list[Alignment | Exception | None] = []
        for first in range(0, len(texts), at_once):
            rows = texts[first : first + at_once]
            audio = encoded.audio.rows(first, first + at_once)
            aligned += self._align(audio, rows) if any(rows) else [None] * len(rows)
        return aligned

    def _align(self, audio: Audio, texts: Sequence[TextToAlign | None]) -> list[Alignment | None]:
        eot = self._tokens.eot
        start = next(text.start for text in texts if text is not None)
        nothing = TextToAlign(start, (), 1)
        rows = [text or nothing for text in texts]
        rows += [nothing] * (len(audio.memory[0][0]) - len(rows))
        sequences = [[*row.start, self._tokens.no_timestamps, *row.tokens, eot] for row in rows]
        tokens = torch.tensor(
            [[*sequence, *[eot] * (_ALIGNED_TOKENS - len(sequence))] for sequence in sequences],
            device=self._device,
        )
        looks, x = attention_to_audio(self._network, audio, tokens, self._alignment_heads)
        lengths = torch.tensor([len(sequence) for sequence in sequences], device=self._device)
        frames = torch.tensor([max(1, row.frames) for row in rows], device=self._device)
        costs = alignment_costs(looks, lengths, frames)[:, len(start) :]
        starts = first_frames(costs, lengths - len(start) - 1, frames).tolist()
        logits = self._network.logits(x)[..., :eot]
        own = tokens.roll(-1, 1).clamp(max=eot - 1)[..., None]
        probabilities = (
            (logits.gather(-1, own)[..., 0] - logits.logsumexp(-1)).exp()[:, len(start) :].tolist()
        )
        return [
            Alignment(tuple(begins[: len(text.tokens) + 1]), tuple(of_tokens[: len(text.tokens)]))
            if text is not None
            else None
            for text, begins, of_tokens in zip(texts, starts, probabilities, strict=False)
        ]

    def close(self) -> None:
        """Free the model's memory."""
        self._audio.clear()
        self._network.clear()
        if self._device == "cuda":
            torch.cuda.empty_cache()

    def _fitting(self, windows: int) -> int:
        """The most windows, up to so many, for which the GPU has memory now."""
        free, _ = torch.cuda.mem_get_info()
        for fewer in range(windows, 0, -1):
            if batch_bytes(self._network, fewer, len(self._alignment_heads)) <= _FREE_SHARE * free:
                return fewer
        raise RuntimeError(
            f"CUDA out of memory: {free >> 20} MiB are free, which is too little for one window"
        )

    def _take_memory(self) -> None:
        """Decode a full batch of silence: the largest that comes. Torch keeps the memory."""
        silence = self.prepare([bytes(2 * SAMPLE_RATE)] * self.batch_size, FULL_CONTEXT_S)
        encoded = self.encode(silence)
        prompt = [*[self._tokens.eot] * (MAX_TOKENS // 2), self._tokens.sot]
        self.generate(encoded, [prompt] * self.batch_size, Search(_USUAL_BEAMS))
        if self._alignment_heads:
            text = TextToAlign((self._tokens.sot,), (0,), FRAMES_PER_SECOND)
            self.align(encoded, [text] * self.batch_size)


def batch_bytes(network: Network, windows: int, alignment_heads: int) -> int:
    """How much memory a batch of so many windows takes beside the weights, with the usual number of beams."""
    size = network.embeddings.element_size()
    places = PADDED_FRAMES + PROMPT_PLACES[-1] + MAX_NEW_TOKENS * _USUAL_BEAMS
    memory = windows * len(network.layers) * 2 * places * network.width * size
    at_once = min(_ENCODED_AT_ONCE, windows)
    # The largest counts: values of an encoder layer, logits of the search, logits or looks of an alignment.
    encoding = at_once * AUDIO_FRAMES * network.width * 12 * size
    searching = windows * _USUAL_BEAMS * network.vocabulary * _LOGITS_COPIES * 4
    logits = at_once * _ALIGNED_TOKENS * network.vocabulary * 3 * 4
    looks = at_once * alignment_heads * _ALIGNED_TOKENS * AUDIO_FRAMES * (_MEDIAN_COPIES) * 4
    return memory + max(encoding, searching, logits, looks)
