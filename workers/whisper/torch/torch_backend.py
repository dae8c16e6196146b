"""The backend that computes with torch. Its search gives CTranslate2's texts.

A window's result depends on itself alone: shapes follow from its context, its beams, the places for its
prompt and the batch size of the settings, never from the other windows. So batches are filled up.
"""

import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from workers import calls
from workers.messages import FULL_CONTEXT_S, SAMPLE_RATE, LoadOptions
from workers.whisper.backend import (
    FILLED_FRAMES,
    FRAMES_PER_SECOND,
    Alignment,
    Generated,
    Search,
    Slice,
    SpecialTokens,
    TextToAlign,
    places_by_key,
)
from workers.whisper.model_check import read_vocabulary
from workers.whisper.torch.decoder import (
    PROMPT_PLACES,
    Decoder,
    KeysAndValues,
    LayerByLayer,
    part_of,
    prefill,
    prompt_places,
    remember,
    reserve,
)
from workers.whisper.torch.features import Spectrograms
from workers.whisper.torch.graphs import GraphRecorder
from workers.whisper.torch.network import AUDIO_FRAMES, Network
from workers.whisper.torch.search import MAX_NEW_TOKENS
from workers.whisper.torch.token_rules import TokenRules
from workers.whisper.torch.weights import read_weights
from workers.whisper.torch.word_times import ALIGNED_TOKENS, Aligner

Tensor = torch.Tensor

_USUAL_BEAMS = 5
_WINDOW_PLACES = PROMPT_PLACES[-1] + MAX_NEW_TOKENS * _USUAL_BEAMS  # of a window, for prompt and texts
_ENCODED_AT_ONCE = 4  # windows; so many keep a GPU busy, and short drafts do not wait for more
_STEPS_BETWEEN_LOOKS = {"cpu": 1, "cuda": 8}  # the device waits while the host looks whether all are done
_SILENT_FEATURE = -1.5  # of digital silence, in each mel bin
_FREE_SHARE = 0.95  # of a GPU's free memory, that a model and its batches may take
# Copies of what the search and the alignment compute with, that exist at the same time.
_LOGITS_COPIES, _MEDIAN_COPIES, _PATH_COPIES = 4, 14, 8


@contextmanager
def _computing() -> Iterator[None]:
    """Without gradients, and with errors that a process without torch can read."""
    try:
        with torch.inference_mode():
            yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "torch":
            raise
        raise RuntimeError(str(error)) from None


@dataclass(frozen=True, slots=True)
class _Encoded:
    """Windows whose encoding is in the decoder's memory."""

    audio: Sequence[bytes]  # samples of each
    frames: int  # of the context of all


class TorchBackend:
    """A model in torch, and its memory."""

    threads = 1

    @_computing()
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
        self._network = Network(*read_weights(folder / "model.bin", self._device, self._dtype))
        vocabulary = read_vocabulary(folder)
        self.multilingual = "" in vocabulary  # as CTranslate2 knows it
        self._languages = {token: vocabulary[token][2:-2] for token in config["lang_ids"]}
        self._alignment_heads = [(layer, head) for layer, head in config.get("alignment_heads") or ()]
        self._rules = TokenRules(tokens, config["suppress_ids_begin"], self._network.vocabulary, self._device)
        self.batch_size = self._fitting(options.batch_size) if self._device == "cuda" else options.batch_size
        self._at_once = min(_ENCODED_AT_ONCE, self.batch_size)
        places = self.batch_size + -self.batch_size % self._at_once
        self._spectrograms = Spectrograms(self._network.mel_bins, self._device, places)
        self._audio = reserve(self._network, places, AUDIO_FRAMES)
        self._memory = reserve(self._network, self.batch_size, _WINDOW_PLACES)
        self.recorder = GraphRecorder(self._device)
        self._decoders: dict[tuple[int, int, int], Decoder] = {}  # by beams, places and frames
        self._aligners: dict[int, Aligner] = {}  # by frames
        if self._device == "cuda":
            self._take_memory()

    def divide(self, prompt_tokens: Sequence[int], beams: int) -> list[list[int]]:
        """Windows whose prompts have as many places, in batches."""
        groups, most = places_by_key(map(prompt_places, prompt_tokens)), self._windows(beams)
        return [group[first : first + most] for group in groups for first in range(0, len(group), most)]

    def _windows(self, beams: int) -> int:
        """How many windows a batch with so many beams has, those that only fill it among them."""
        return max(1, min(self.batch_size, self.batch_size * _USUAL_BEAMS // beams))

    @_computing()
    def encode(self, audio: Sequence[bytes], context_s: int) -> _Encoded:
        """Put windows into the decoder's memory, until the next ones are encoded."""
        filled = [*audio, *[audio[0]] * (-len(audio) % self._at_once)]
        with calls.measured("encode"):
            for first in range(0, len(filled), self._at_once):
                # The host gets the next ones ready while the device encodes these.
                windows = self._spectrograms.upload(filled[first : first + self._at_once], context_s, first)
                encoded = self._network.encode(self._spectrograms(*windows).to(self._dtype))
                remember(self._network, encoded, self._audio, first)
        return _Encoded(audio, context_s * FRAMES_PER_SECOND)

    @_computing()
    def detect_language(self, encoded: _Encoded) -> list[list[tuple[str, float]]]:
        audio = part_of(self._audio, slice(self.batch_size), encoded.frames)
        return self._languages_in(audio, self.batch_size)[: len(encoded.audio)]

    @_computing()
    def detect_in_slices(self, encoded: _Encoded, slices: Sequence[Slice]) -> list[list[tuple[str, float]]]:
        at_once = self.batch_size * AUDIO_FRAMES // FILLED_FRAMES  # they take no more time than the windows
        found: list[list[tuple[str, float]]] = []
        for first in range(0, len(slices), at_once):
            parts = slices[first : first + at_once]
            # Always as many: so the other slices change nothing.
            filled = [*parts, *[parts[0]] * (at_once - len(parts))]
            found += self._languages_in(self._filled_up(filled), at_once)[: len(parts)]
        return found

    def _filled_up(self, slices: Sequence[Slice]) -> LayerByLayer:
        """What each of the decoder's layers sees of slices, and of silence behind them."""
        # Few calls for all slices: each takes its host as long as a device.
        places = torch.tensor([(part.window, part.start, part.frames) for part in slices])
        windows, starts, lengths = places.to(self._device)[..., None].unbind(1)  # each (slices, 1)
        frames = torch.arange(FILLED_FRAMES, device=self._device)
        behind = (frames >= lengths)[:, None, :, None]
        frames = (starts + frames).clamp(max=AUDIO_FRAMES - 1)
        for seen, silence in zip(self._audio, self._silence, strict=True):
            keys, values = (
                torch.where(behind, silent, part[windows, :, frames].transpose(1, 2))
                for part, silent in zip(seen, silence, strict=True)
            )
            yield keys, values

    def _languages_in(self, audio: LayerByLayer, windows: int) -> list[list[tuple[str, float]]]:
        """The languages that the decoder's first step finds, and their probabilities."""
        start = torch.full((windows, 1), self._tokens.sot, device=self._device)
        logits = self._network.logits(prefill(self._network, audio, start)[:, 0])
        probabilities = logits[:, list(self._languages)].float().softmax(-1)
        return [list(zip(self._languages.values(), row, strict=True)) for row in probabilities.tolist()]

    @cached_property
    def _silence(self) -> KeysAndValues:
        """What the decoder's layers see of the last frames of a window without sound."""
        features = torch.zeros(
            (1, self._network.mel_bins, 2 * AUDIO_FRAMES), dtype=self._dtype, device=self._device
        )
        features[..., : 2 * FRAMES_PER_SECOND] = _SILENT_FEATURE
        silence = reserve(self._network, 1, FILLED_FRAMES)
        remember(self._network, self._network.encode(features)[:, -FILLED_FRAMES:], silence, 0)
        return silence

    @_computing()
    def generate(
        self, encoded: _Encoded, prompts: Sequence[Sequence[int]], search: Search
    ) -> list[Generated]:
        decoder = self._decoder(search.beams, prompt_places(max(map(len, prompts))), encoded.frames)
        asked = [prompt.index(self._tokens.sot) for prompt in prompts]
        hashes = [zlib.crc32(pcm) if search.temperature > 0 else 0 for pcm in encoded.audio]  # for samples
        decoder.begin(prompts, asked, hashes, search)
        texts = decoder.texts
        for step in range(1, MAX_NEW_TOKENS):
            if step % _STEPS_BETWEEN_LOOKS[self._device] == 0 and bool(texts.done.all()):
                break
            decoder.step(search, step)
        results = (texts.best, texts.best_length, texts.best_score, decoder.no_speech)
        found = zip(*(values[: len(prompts)].tolist() for values in results), strict=True)
        return [
            Generated(tuple(tokens[:length]), score, probability)
            for tokens, length, score, probability in found
        ]

    def _decoder(self, beams: int, places: int, frames: int) -> Decoder:
        key = (beams, places, frames)
        if key not in self._decoders:
            audio = part_of(self._audio, slice(self._windows(beams)), frames)
            self._decoders[key] = Decoder(
                self._network, audio, self._rules, beams, places, self._memory, self.recorder
            )
        return self._decoders[key]

    @_computing()
    def align(
        self, encoded: _Encoded, texts: Sequence[TextToAlign | None]
    ) -> list[Alignment | Exception | None]:
        if encoded.frames not in self._aligners:
            audio = part_of(self._audio, slice(None), encoded.frames)
            self._aligners[encoded.frames] = Aligner(
                self._network, audio, self._alignment_heads, self._tokens.eot, self._at_once, self.recorder
            )
        starts, probabilities = self._aligners[encoded.frames](
            [
                [*text.start, self._tokens.no_timestamps, *text.tokens, self._tokens.eot] if text else []
                for text in texts
            ],
            [text.frames if text else 1 for text in texts],
            next(len(text.start) for text in texts if text is not None),
        )
        return [
            Alignment(tuple(begins[: len(text.tokens) + 1]), tuple(likely[: len(text.tokens)]))
            if text
            else None
            for text, begins, likely in zip(texts, starts, probabilities, strict=False)
        ]

    def close(self) -> None:
        self.__dict__.clear()
        torch.cuda.empty_cache()  # which does nothing unless this process uses a GPU

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
        """Decode silence, so that torch keeps the memory that batches take."""
        encoded = self.encode([bytes(2 * SAMPLE_RATE)] * self.batch_size, FULL_CONTEXT_S)
        self.generate(encoded, [[self._tokens.sot]] * self.batch_size, Search(_USUAL_BEAMS))
        if self._alignment_heads:
            text = TextToAlign((self._tokens.sot,), (0,), FRAMES_PER_SECOND)
            self.align(encoded, [text] * self.batch_size)


def batch_bytes(network: Network, windows: int, alignment_heads: int) -> int:
    """How much memory a batch of so many windows takes beside the weights, with the usual number of beams."""
    size = network.embeddings.element_size()
    memory = windows * len(network.layers) * 2 * (AUDIO_FRAMES + _WINDOW_PLACES) * network.width * size
    at_once = min(_ENCODED_AT_ONCE, windows)
    encoding = at_once * AUDIO_FRAMES * network.width * 12 * size
    # What a GPU has recorded keeps memory of its own, for the search and for alignments.
    searching = windows * _USUAL_BEAMS * network.vocabulary * _LOGITS_COPIES * 4
    logits = at_once * ALIGNED_TOKENS * network.vocabulary * 3 * 4
    looks = at_once * alignment_heads * ALIGNED_TOKENS * AUDIO_FRAMES * _MEDIAN_COPIES * 4
    paths = windows * ALIGNED_TOKENS * AUDIO_FRAMES * _PATH_COPIES * 8
    return memory + encoding + searching + logits + looks + paths
