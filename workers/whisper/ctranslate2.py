"""The backend that computes with CTranslate2."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any

from workers import calls
from workers.causes import Cause, cause_of
from workers.messages import FULL_CONTEXT_S, SAMPLE_RATE, LoadOptions
from workers.whisper.backend import (
    FILLED_FRAMES,
    MAX_INITIAL_TIMESTAMP,
    MAX_TOKENS,
    Alignment,
    Generated,
    Search,
    Slice,
    SpecialTokens,
    TextToAlign,
    places_by_key,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_FRAMES_PER_SECOND = 100  # of the spectrogram: two for each frame of the encoder


class CTranslate2Backend:
    """A model in CTranslate2."""

    def __init__(self, options: LoadOptions, compute_type: str, tokens: SpecialTokens) -> None:
        """Load the model. Raises RuntimeError and ValueError as CTranslate2 does."""
        import ctranslate2
        from faster_whisper.feature_extractor import FeatureExtractor

        self._tokens, self.batch_size = tokens, options.batch_size
        # On a GPU, CTranslate2 works on the host for most of the time: it lists the tokens that a timestamp
        # excludes, row by row. So threads decode parts of a batch. On a CPU they all work on each row.
        self.threads = options.cpu_threads if options.device == "cuda" else 1
        self._whisper = ctranslate2.models.Whisper(
            options.path,
            device=options.device,
            compute_type=compute_type,
            intra_threads=options.cpu_threads,
            inter_threads=self.threads,
        )
        self.compute_type = str(self._whisper.compute_type)
        self.multilingual = bool(self._whisper.is_multilingual)
        self._extract = FeatureExtractor(self._whisper.n_mels)
        self._threads_of_part = options.cpu_threads // self.threads
        self._encoding = threading.Lock()

    def divide(self, prompt_tokens: Sequence[int], beams: int) -> list[list[int]]:
        """Windows whose prompts have one length, as CTranslate2 needs them: a part for each thread."""
        return [
            group[first :: self.threads]
            for group in places_by_key(prompt_tokens)
            for first in range(min(self.threads, len(group)))
        ]

    def encode(self, audio: Sequence[bytes], context_s: int) -> Any:
        import ctranslate2

        with calls.measured("features"):
            features = self.features(audio, context_s)
        # That takes all of a GPU, so the parts take turns.
        with calls.measured("encode"), self._encoding:
            return self._whisper.encode(ctranslate2.StorageView.from_array(features))

    def features(self, audio: Sequence[bytes], context_s: int) -> "npt.NDArray[np.float32]":
        """The log-mel spectrograms of windows, padded to the context: shape (windows, mel bins, frames)."""
        import numpy as np

        frames = context_s * _FRAMES_PER_SECOND

        def spectrogram(pcm: bytes) -> "npt.NDArray[np.float32]":
            features = self._extract(np.frombuffer(pcm, "<i2").astype(np.float32) / 32768)[:, :frames]
            return np.pad(features, ((0, 0), (0, frames - features.shape[1])))

        with ThreadPoolExecutor(self._threads_of_part, "features") as pool:
            return np.stack(list(pool.map(spectrogram, audio)))

    def detect_language(self, encoded: Any) -> list[list[tuple[str, float]]]:
        return [
            [(token[2:-2], probability) for token, probability in languages]
            for languages in self._whisper.detect_language(encoded)
        ]

    def detect_in_slices(self, encoded: Any, slices: Sequence[Slice]) -> list[list[tuple[str, float]]]:
        import ctranslate2
        import numpy as np

        frames = _on_host(encoded)
        windows, length, _ = frames.shape
        at_once = windows * length // FILLED_FRAMES  # they take no more memory than the windows
        found: list[list[tuple[str, float]]] = []
        for first in range(0, len(slices), at_once):
            parts = slices[first : first + at_once]
            filled = np.repeat(self._silence, len(parts), axis=0)
            for cut, part in zip(filled, parts, strict=True):
                cut[: part.frames] = frames[part.window, part.start : part.start + part.frames]
            found += self.detect_language(ctranslate2.StorageView.from_array(filled))
        return found

    @cached_property
    def _silence(self) -> "npt.NDArray[np.float32]":
        """The last frames of an encoded window without sound: (1, frames, values)."""
        return _on_host(self.encode([bytes(2 * SAMPLE_RATE)], FULL_CONTEXT_S))[:, -FILLED_FRAMES:]

    def generate(self, encoded: Any, prompts: Sequence[Sequence[int]], search: Search) -> list[Generated]:
        samples = search.temperature > 0
        results = self._whisper.generate(
            encoded,
            [list(prompt) for prompt in prompts],
            max_length=MAX_TOKENS,
            return_scores=True,
            return_no_speech_prob=True,
            suppress_tokens=list(self._tokens.suppressed),
            max_initial_timestamp_index=MAX_INITIAL_TIMESTAMP,
            no_repeat_ngram_size=search.no_repeat_ngram_size,
            beam_size=1 if samples else search.beams,
            num_hypotheses=search.beams if samples else 1,
            sampling_topk=0 if samples else 1,
            sampling_temperature=search.temperature if samples else 1.0,
        )
        return [
            Generated(tuple(result.sequences_ids[0]), result.scores[0], result.no_speech_prob)
            for result in results
        ]

    def align(self, encoded: Any, texts: Sequence[TextToAlign | None]) -> list[Alignment | Exception | None]:
        """The times of each window's text.

        CTranslate2 aligns all windows with one start sequence, so each needs its own pass. In it, the windows
        of the others have no text. Windows do not influence one another.
        """
        aligned: list[Alignment | Exception | None] = [None] * len(texts)
        for group in places_by_key(text and text.start for text in texts):
            if texts[group[0]] is not None:
                for place, found in zip(group, self._align_group(encoded, texts, group), strict=True):
                    aligned[place] = found
        return aligned

    def _align_group(
        self, encoded: Any, texts: Sequence[TextToAlign | None], group: Sequence[int]
    ) -> list[Alignment | Exception]:
        """Align the texts at some places; after an error one by one, so that it costs no other its times."""
        first = texts[group[0]]
        assert first is not None
        tokens = [list(text.tokens) if text and place in group else [] for place, text in enumerate(texts)]
        frames = [2 * (text or first).frames for text in texts]
        try:
            results = self._whisper.align(encoded, list(first.start), tokens, frames)
            return [_alignment(results[place]) for place in group]
        except (RuntimeError, ValueError, IndexError) as error:
            if cause_of(error) is not Cause.TASK:
                raise
            if len(group) == 1:
                return [error]
            return [found for place in group for found in self._align_group(encoded, texts, [place])]

    def close(self) -> None:
        """Nothing: CTranslate2 frees the memory with the object."""


def _on_host(encoded: Any) -> "npt.NDArray[np.float32]":
    """The encoder's output in the host's memory: (windows, frames, values)."""
    import ctranslate2
    import numpy as np

    values = encoded.to(ctranslate2.DataType.float32).to_device(ctranslate2.Device.cpu)
    return np.array(values)


def _alignment(result: Any) -> Alignment:
    """From pairs of token and frame along a path to the first frame of each token."""
    starts: list[int] = []
    for token, frame in result.alignments:
        if token == len(starts):
            starts.append(frame)
    return Alignment(tuple(starts), tuple(result.text_token_probs))
