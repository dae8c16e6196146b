"""The backend that computes with torch. Its search gives CTranslate2's texts.

A window's result depends on itself alone: shapes follow from its context, its beams, the places for its
prompt and the batch size of the settings, never from the other windows. So batches are filled up.
"""

import json
import zlib
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import chain
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
    places_by_key,
)
from workers.whisper.model_check import read_vocabulary
from workers.whisper.torch.decoder import (
    PROMPT_PLACES,
    Audio,
    Decoder,
    prefill,
    prompt_places,
    remember,
    reserve,
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

Tensor = torch.Tensor
P = ParamSpec("P")
R = TypeVar("R")
_Prepared = tuple["npt.NDArray[np.int16]", int, int]

_USUAL_BEAMS = 5
_TEXT_PLACES = PROMPT_PLACES[-1] + MAX_NEW_TOKENS * _USUAL_BEAMS  # of a window, for prompt and texts
_RECORDED_BEAMS = (_USUAL_BEAMS, 1)  # of beam searches, for which a GPU records steps
_ENCODED_AT_ONCE = 4  # windows; so many keep a GPU busy, and short drafts do not wait for more
_STEPS_BETWEEN_LOOKS = {"cpu": 1, "cuda": 8}  # the device waits while the host looks whether all are done
_ALIGNED_TOKENS = 232  # most: start, no timestamps, text, end; a multiple of 8
_FREE_SHARE = 0.95  # of a GPU's free memory, that a model and its batches may take
# Copies of what the search and the alignment compute with, that exist at the same time.
_LOGITS_COPIES, _MEDIAN_COPIES = 6, 14


def _computes(function: Callable[P, R]) -> Callable[P, R]:
    """Without gradients, and with errors that a process without torch can read."""

    @wraps(function)
    def compute(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with torch.inference_mode():
                return function(*args, **kwargs)
        except Exception as error:
            if type(error).__module__.partition(".")[0] != "torch":
                raise
            raise RuntimeError(str(error)) from None

    return compute


class TorchBackend:
    """A model in torch, and its memory."""

    threads = 1
    replays = True  # the steps that a GPU has recorded

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
        self._at_once = min(_ENCODED_AT_ONCE, self.batch_size)
        bias = self._network.embeddings.new_zeros((1, 1, 1, PADDED_FRAMES))
        self._audio = Audio(reserve(self._network, self.batch_size, PADDED_FRAMES), bias)
        self._memory = reserve(self._network, self.batch_size, _TEXT_PLACES)
        self._decoders: dict[tuple[int, int], Decoder] = {}  # by beams and places
        if self._device == "cuda":
            self._take_memory()

    def divide(self, prompt_tokens: Sequence[int], beams: int) -> list[list[int]]:
        """Windows whose prompts have as many places, in batches."""
        groups, most = places_by_key(map(prompt_places, prompt_tokens)), self._windows(beams)
        return [group[first : first + most] for group in groups for first in range(0, len(group), most)]

    def _windows(self, beams: int) -> int:
        """How many windows a batch with so many beams has, those that only fill it among them."""
        return max(1, min(self.batch_size, self.batch_size * _USUAL_BEAMS // beams))

    def prepare(self, audio: Sequence[bytes], context_s: int) -> list[_Prepared]:
        """The samples, a hash of them for samples of the texts, and the context."""
        return [(padded(pcm), zlib.crc32(pcm), context_s) for pcm in audio]

    @_computes
    def encode(self, prepared: Sequence[_Prepared]) -> list[int]:
        """Put windows into the decoder's memory, until the next ones are encoded. Returns their hashes."""
        audio, hashes, (context_s, *_) = zip(*prepared, strict=True)
        for first in range(0, len(prepared), self._at_once):
            windows = audio[first : first + self._at_once]
            windows += windows[:1] * (self._at_once - len(windows))
            features = self._spectrograms(windows, context_s).to(self._dtype)
            encoded = self._network.encode(features)[: self.batch_size - first]
            remember(self._network, encoded, self._audio, first)
        return list(hashes)

    @_computes
    def detect_language(self, encoded: Sequence[int]) -> list[list[tuple[str, float]]]:
        start = torch.full((self.batch_size, 1), self._tokens.sot, device=self._device)
        logits = self._network.logits(prefill(self._network, self._audio, start)[:, 0])
        probabilities = logits[: len(encoded), list(self._languages)].softmax(-1)
        return [list(zip(self._languages.values(), row, strict=True)) for row in probabilities.tolist()]

    @_computes
    def generate(
        self, encoded: Sequence[int], prompts: Sequence[Sequence[int]], search: Search
    ) -> list[Generated]:
        decoder = self._decoder(search.beams, prompt_places(max(map(len, prompts))))
        asked = [prompt.index(self._tokens.sot) for prompt in prompts]
        at_start = decoder.begin(prompts, asked, encoded, search)
        texts = decoder.texts
        for step in range(1, MAX_NEW_TOKENS):
            if step % _STEPS_BETWEEN_LOOKS[self._device] == 0 and bool(texts.done.all()):
                break
            decoder.step(search, replay=self.replays)
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

    def _decoder(self, beams: int, places: int) -> Decoder:
        if (beams, places) not in self._decoders:
            audio = self._audio.rows(slice(self._windows(beams)))
            self._decoders[beams, places] = Decoder(
                self._network, audio, self._rules, beams, places, self._memory
            )
        return self._decoders[beams, places]

    @_computes
    def align(
        self, encoded: Sequence[int], texts: Sequence[TextToAlign | None]
    ) -> list[Alignment | Exception | None]:
        start = next(text.start for text in texts if text is not None)
        nothing = TextToAlign(start, (), 1)
        rows = [*(text or nothing for text in texts), *[nothing] * (self.batch_size - len(texts))]
        # Those without any text are left out: a batch may have two windows of a live stream alone.
        parts = [
            range(self.batch_size)[first : first + self._at_once]
            for first in range(0, len(texts), self._at_once)
            if any(texts[first : first + self._at_once])
        ]
        found = [self._attend(slice(part.start, part.stop), [rows[at] for at in part]) for part in parts]
        places = list(chain(*parts))
        starts = first_frames(
            torch.cat([costs for costs, _ in found]),
            [len(rows[at].tokens) + 1 for at in places],
            [max(1, rows[at].frames) for at in places],
        )
        probabilities = torch.cat([of_part for _, of_part in found]).tolist()
        times = dict(zip(places, zip(starts, probabilities, strict=True), strict=True))
        return [
            Alignment(tuple(times[at][0]), tuple(times[at][1][: len(text.tokens)])) if text else None
            for at, text in enumerate(texts)
        ]

    def _attend(self, part: slice, rows: Sequence[TextToAlign]) -> tuple[Tensor, Tensor]:
        """The costs of each token at each frame, from the first of the text to its end; and probabilities."""
        eot, skipped = self._tokens.eot, len(rows[0].start)
        sequences = [[*row.start, self._tokens.no_timestamps, *row.tokens, eot] for row in rows]
        tokens = torch.tensor(
            [[*sequence, *[eot] * (_ALIGNED_TOKENS - len(sequence))] for sequence in sequences],
            device=self._device,
        )
        looks, x = attention_to_audio(self._network, self._audio.rows(part), tokens, self._alignment_heads)
        costs = alignment_costs(
            looks, [len(sequence) for sequence in sequences], [row.frames for row in rows]
        )
        logits = self._network.logits(x)[..., :eot]
        own = tokens.roll(-1, 1).clamp(max=eot - 1)[..., None]
        probabilities = (logits.gather(-1, own)[..., 0] - logits.logsumexp(-1)).exp()
        return costs[:, skipped:], probabilities[:, skipped:]

    def close(self) -> None:
        on_gpu = self._device == "cuda"
        self.__dict__.clear()
        if on_gpu:
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
        """Decode the largest batches that come, of silence: torch keeps their memory. Then record steps."""
        silence = self.prepare([bytes(2 * SAMPLE_RATE)] * self.batch_size, FULL_CONTEXT_S)
        encoded = self.encode(silence)
        task = [self._tokens.sot]
        for prompt in ([*[self._tokens.eot] * (MAX_TOKENS // 2), *task], task):
            for beams in _RECORDED_BEAMS:
                search = Search(beams)
                windows = self._windows(beams)
                self.generate(encoded[:windows], [prompt] * windows, search)
                self._decoder(beams, prompt_places(len(prompt))).record(search)
        if self._alignment_heads:
            text = TextToAlign((self._tokens.sot,), (0,), FRAMES_PER_SECOND)
            self.align(encoded, [text] * self.batch_size)


def batch_bytes(network: Network, windows: int, alignment_heads: int) -> int:
    """How much memory a batch of so many windows takes beside the weights, with the usual number of beams."""
    size = network.embeddings.element_size()
    memory = windows * len(network.layers) * 2 * (PADDED_FRAMES + _TEXT_PLACES) * network.width * size
    at_once = min(_ENCODED_AT_ONCE, windows)
    # The largest counts: values of an encoder layer, logits of the search, logits or looks of an alignment.
    encoding = at_once * AUDIO_FRAMES * network.width * 12 * size
    searching = windows * _USUAL_BEAMS * network.vocabulary * _LOGITS_COPIES * 4
    logits = at_once * _ALIGNED_TOKENS * network.vocabulary * 3 * 4
    looks = at_once * alignment_heads * _ALIGNED_TOKENS * AUDIO_FRAMES * _MEDIAN_COPIES * 4
    return memory + max(encoding, searching, logits, looks)
