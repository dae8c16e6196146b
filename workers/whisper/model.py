"""The Whisper worker: loads models, and transcribes batches of clips with them."""

import gc
import json
import os
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.causes import Cause, cause_of
from workers.messages import (
    SAMPLE_RATE,
    SAMPLED_TEXTS,
    Clip,
    ClipResult,
    Decoding,
    LoadOptions,
    Segment,
    Word,
    WorkerInfo,
)
from workers.runtime import keep_freed_memory, preload_cublas, release_freed_memory
from workers.whisper.alignment import ALIGNMENT_ERRORS, assign_words
from workers.whisper.clip_decoding import (
    Thresholds,
    TimestampedText,
    Window,
    WindowResult,
    decode_clip,
    split_at_timestamps,
)
from workers.whisper.compute_types import choose, smaller
from workers.whisper.model_check import check_files, missing_word_times
from workers.whisper.scores import LanguageProbs, finite_logprob, finite_probability, rank_languages

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from faster_whisper.tokenizer import Tokenizer

# Constants of openai-whisper (`decoding.py`, `transcribe.py`).
_SUPPRESS_NON_SPEECH = -1
_MAX_INITIAL_TIMESTAMP_INDEX = 50  # 1.0 s
_SAMPLES_PER_MEL_FRAME = SAMPLE_RATE // 100
_MAX_LANGUAGES = 10  # of a clip's result

_CTRANSLATE2_DECIDES = ("auto", "default")

_loads = 0
_models: "dict[str, LoadedModel]" = {}  # by the model's name


def supported_compute_types(device: str) -> set[str]:
    """The compute types that CTranslate2 offers on `device` ("cuda": on the first visible GPU)."""
    _prepare(device)
    import ctranslate2

    return set(ctranslate2.get_supported_compute_types(device))


def load(options: LoadOptions) -> WorkerInfo:
    """Load a model into this process.

    Raises the errors of CTranslate2, and RuntimeError if the model's files do not fit together.
    """
    global _loads
    _prepare(options.device)
    loaded = _models[options.model] = LoadedModel(options)
    _loads += 1
    return WorkerInfo(
        pid=os.getpid(),
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        model=options.model,
        device=options.device,
        compute_type=loaded.compute_type,
        loads=_loads,
        languages=loaded.languages,
        note=loaded.note,
    )


def unload(model: str) -> None:
    """Free the memory of a model. Does nothing if it is not loaded."""
    _models.pop(model, None)
    gc.collect()
    # The next model of this size may come hours later.
    release_freed_memory()


def transcribe(clips: Sequence[Clip]) -> list[ClipResult]:
    """Transcribe a batch of clips, of any jobs and languages. The results are in the clips' order.

    All clips must have the same `batch_key`. Raises RuntimeError if their model is not loaded.
    """
    model = clips[0].decoding.model
    if model not in _models:
        raise RuntimeError(f"the model {model!r} is not loaded in this worker")
    return _models[model].transcribe(clips)


def smaller_compute_type(options: LoadOptions) -> str | None:
    """The compute type with which the model takes less memory; None if the device has none."""
    compute_type = _compute_type(options)
    if compute_type in _CTRANSLATE2_DECIDES:
        loaded = _models.get(options.model)
        # A model that failed to load had the largest type, as far as we know.
        compute_type = loaded.compute_type if loaded else "float32"
    return smaller(compute_type, options.device, supported_compute_types(options.device))


def _compute_type(options: LoadOptions) -> str:
    supported = supported_compute_types(options.device)
    return choose(options.compute_type, options.device, supported, safe=options.safe)


def _prepare(device: str) -> None:
    if device == "cuda":
        preload_cublas()
    else:
        keep_freed_memory()


@dataclass(slots=True)
class _ActiveClip:
    """A clip, the generator of its windows, and the window that it waits for."""

    clip: Clip
    windows: Generator[Window, WindowResult, ClipResult]
    window: Window
    note: str | None = None  # why words are missing


@dataclass(slots=True)
class _Row:
    """A row of a batch after decoding: one window."""

    decoding: Decoding
    language: str
    tokenizer: "Tokenizer"
    result: Any  # ctranslate2.models.WhisperGenerationResult
    samples: int  # length of the window
    texts: list[TimestampedText]
    closed: bool  # whether the last text has a closing timestamp
    words: list[tuple[Word, ...]]  # of each text
    note: str | None = None  # why there are none


class LoadedModel:
    """One loaded model. Keeps no state between batches."""

    def __init__(self, options: LoadOptions) -> None:
        from faster_whisper import WhisperModel
        from faster_whisper.transcribe import get_suppressed_tokens

        check_files(Path(options.path))
        self.note = missing_word_times(Path(options.path))
        self._whisper = WhisperModel(
            options.path,
            device=options.device,
            compute_type=_compute_type(options),
            cpu_threads=options.cpu_threads,
            local_files_only=True,
        )
        self.compute_type: str = self._whisper.model.compute_type
        self.languages = _supported_languages(self._whisper)
        self._thresholds = _read_thresholds(Path(options.path))
        self._threads = ThreadPoolExecutor(options.cpu_threads, "features")
        self._tokenizers: dict[tuple[str, str], Tokenizer] = {}
        self._suppressed = get_suppressed_tokens(self._tokenizer("en", "transcribe"), [_SUPPRESS_NON_SPEECH])

    def transcribe(self, clips: Sequence[Clip]) -> list[ClipResult]:
        """Transcribe all clips. The current windows of all clips are decoded together."""
        results: dict[int, ClipResult] = {}
        active: dict[int, _ActiveClip] = {}
        for index, clip in enumerate(clips):
            adapted = self._adapt_to_model(clip)
            windows = decode_clip(adapted)
            active[index] = _ActiveClip(adapted, windows, next(windows))
        while active:
            for group in self._group_by_options(active):
                decoded = self._decode_windows([active[index] for index in group])
                for index, result in zip(group, decoded, strict=True):
                    try:
                        active[index].window = active[index].windows.send(result)
                    except StopIteration as done:
                        results[index] = replace(done.value, note=active[index].note)
                        del active[index]
        return [results[index] for index in range(len(clips))]

    def _adapt_to_model(self, clip: Clip) -> Clip:
        """Replace options that the model does not support: a language that it lacks is detected instead."""
        decoding = clip.decoding
        if self.languages == ("en",):
            decoding = replace(decoding, language="en", task="transcribe")
        elif decoding.language not in self.languages:
            decoding = replace(decoding, language=None)
        return replace(clip, decoding=decoding)

    def _group_by_options(self, active: dict[int, _ActiveClip]) -> list[list[int]]:
        """The clips whose windows may be decoded together.

        CTranslate2 needs prompts of one length and one set of options.
        """
        groups: dict[tuple[int, int], list[int]] = {}
        for index, waiting in active.items():
            key = (len(self._prompt(waiting.clip.decoding, "en")), waiting.window.no_repeat_ngram_size)
            groups.setdefault(key, []).append(index)
        return list(groups.values())

    def _decode_windows(self, clips: Sequence[_ActiveClip]) -> list[WindowResult]:
        """Decode the current window of each clip."""
        import ctranslate2

        features = self._features(clips)
        encoded = self._whisper.model.encode(ctranslate2.StorageView.from_array(features))
        detected = self._detect_languages(clips, encoded)
        languages = [
            active.window.language or probs[0][0] for active, probs in zip(clips, detected, strict=True)
        ]
        generated = self._whisper.model.generate(
            encoded,
            [
                self._prompt(active.clip.decoding, language)
                for active, language in zip(clips, languages, strict=True)
            ],
            no_repeat_ngram_size=clips[0].window.no_repeat_ngram_size,
            max_length=self._whisper.max_length,
            return_scores=True,
            return_no_speech_prob=True,
            suppress_tokens=self._suppressed,
            max_initial_timestamp_index=_MAX_INITIAL_TIMESTAMP_INDEX,
            **_search_options(clips[0].clip.decoding),
        )
        rows = [
            self._row(active, language, result)
            for active, language, result in zip(clips, languages, generated, strict=True)
        ]
        self._align_words(rows, encoded)
        for active, row in zip(clips, rows, strict=True):
            active.note = active.note or row.note
        return [
            _window_result(row, probs, self._thresholds) for row, probs in zip(rows, detected, strict=True)
        ]

    def _row(self, active: _ActiveClip, language: str, result: Any) -> _Row:
        decoding, window = active.clip.decoding, active.window
        tokenizer = self._tokenizer(language, decoding.task)
        samples = window.end - window.start
        closed, rest = split_at_timestamps(result.sequences_ids[0], tokenizer.timestamp_begin, samples)
        texts = [*closed, rest] if rest else closed
        no_words: list[tuple[Word, ...]] = [()] * len(texts)
        return _Row(decoding, language, tokenizer, result, samples, texts, rest is None, no_words)

    def _align_words(self, rows: Sequence[_Row], encoded: Any) -> None:
        """Set the words of the rows that need them, with times in samples from the window's start.

        CTranslate2 aligns all rows with one start sequence, so each language and task needs its own pass.
        In it, the rows of the others have no text. Rows do not influence one another.
        """
        if self.note is not None:
            return
        with_words = [row for row in rows if row.texts and row.decoding.word_timestamps]
        for tokenizer in {id(row.tokenizer): row.tokenizer for row in with_words}.values():
            self._align_or_note([row for row in with_words if row.tokenizer is tokenizer], rows, encoded)

    def _align_or_note(self, group: Sequence[_Row], rows: Sequence[_Row], encoded: Any) -> None:
        """Align the rows of a group; after an error one by one, so that it costs no other row its words."""
        try:
            self._align(group, rows, encoded)
        except ALIGNMENT_ERRORS as error:
            if cause_of(error) is not Cause.TASK:
                raise
            if len(group) > 1:
                for row in group:
                    self._align_or_note([row], rows, encoded)
            else:
                group[0].note = f"no word times: {error}"

    def _align(self, group: Sequence[_Row], rows: Sequence[_Row], encoded: Any) -> None:
        """Set the words of the rows of a group, which have one tokenizer. `encoded` is that of all rows."""
        tokenizer = group[0].tokenizer
        in_pass = [any(row is member for member in group) for row in rows]
        tokens = [
            [[token for token in text.tokens if token < tokenizer.eot] for text in row.texts] if own else []
            for row, own in zip(rows, in_pass, strict=True)
        ]
        frames = [max(1, row.samples // _SAMPLES_PER_MEL_FRAME) for row in rows]
        aligned = self._whisper.find_alignment(
            tokenizer, [list(chain(*texts)) for texts in tokens], encoded, frames
        )
        for row, own, texts, timings in zip(rows, in_pass, tokens, aligned, strict=True):
            if own:
                row.words = assign_words(timings, [len(text) for text in texts])

    def _features(self, clips: Sequence[_ActiveClip]) -> "npt.NDArray[np.float32]":
        """The log-mel spectrograms of the current windows: shape (windows, mel bins, 3000).

        All threads compute them, because the device waits meanwhile.
        """
        import numpy as np

        return np.stack(list(self._threads.map(self._spectrogram, clips)))

    def _spectrogram(self, active: _ActiveClip) -> "npt.NDArray[np.float32]":
        """The current window's log-mel spectrogram, padded to 30 s: shape (mel bins, 3000)."""
        import numpy as np

        pcm = np.frombuffer(active.clip.pcm, "<i2")[active.window.start : active.window.end]
        extractor = self._whisper.feature_extractor
        features = extractor(pcm.astype(np.float32) / 32768)[:, : extractor.nb_max_frames]
        return np.pad(features, ((0, 0), (0, extractor.nb_max_frames - features.shape[1])))

    def _detect_languages(self, clips: Sequence[_ActiveClip], encoded: Any) -> list[LanguageProbs]:
        """The likeliest languages of each window, likeliest first; empty if its language is known."""
        if all(active.window.language for active in clips):
            return [()] * len(clips)
        detected = self._whisper.model.detect_language(encoded)
        return [
            ()
            if active.window.language
            else rank_languages((token[2:-2], prob) for token, prob in probs)[:_MAX_LANGUAGES]
            for active, probs in zip(clips, detected, strict=True)
        ]

    def _prompt(self, decoding: Decoding, language: str) -> list[int]:
        """The decoder's start tokens: hot words and prompt, cut to the model's limit, then the task."""
        tokenizer = self._tokenizer(language, decoding.task)
        limit = self._whisper.max_length // 2 - 1
        hotwords = _text_tokens(tokenizer, decoding.hotwords)[:limit]
        text = _text_tokens(tokenizer, decoding.prompt)
        context = [*hotwords, *text[max(0, len(text) - limit + len(hotwords)) :]]
        return [*([tokenizer.sot_prev, *context] if context else []), *tokenizer.sot_sequence]

    def _tokenizer(self, language: str, task: str) -> "Tokenizer":
        from faster_whisper.tokenizer import Tokenizer

        key = (language, task)
        if key not in self._tokenizers:
            self._tokenizers[key] = Tokenizer(
                self._whisper.hf_tokenizer,
                self._whisper.model.is_multilingual,
                task=task,
                language=language,
            )
        return self._tokenizers[key]


def _supported_languages(whisper: Any) -> tuple[str, ...]:
    """The languages for which the model has a token: some models lack some of Whisper's."""
    if not whisper.model.is_multilingual:
        return ("en",)
    token_id = whisper.hf_tokenizer.token_to_id
    return tuple(code for code in whisper.supported_languages if token_id(f"<|{code}|>") is not None)


def _text_tokens(tokenizer: "Tokenizer", text: str | None) -> list[int]:
    """The tokens of a text, without the decoder's control tokens that it may spell."""
    return [token for token in tokenizer.encode(f" {text.strip()}") if token < tokenizer.eot] if text else []


def _search_options(decoding: Decoding) -> dict[str, Any]:
    if decoding.temperature > 0:
        return {
            "beam_size": 1,
            "num_hypotheses": SAMPLED_TEXTS,
            "sampling_topk": 0,
            "sampling_temperature": decoding.temperature,
        }
    return {"beam_size": decoding.beam_size}


def _read_thresholds(folder: Path) -> Thresholds:
    """The thresholds in the model's `generation_config.json`; defaults for those that it does not name."""
    path = folder / "generation_config.json"
    config = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    named = {field.name: config.get(f"{field.name}_threshold") for field in fields(Thresholds)}
    return Thresholds(**{name: value for name, value in named.items() if value is not None})


def _window_result(row: _Row, language_probs: LanguageProbs, thresholds: Thresholds) -> WindowResult:
    from faster_whisper.transcribe import get_compression_ratio

    tokens = row.result.sequences_ids[0]
    # CTranslate2's score is the mean over the tokens; Whisper also counts the end of text.
    avg_logprob = finite_logprob(row.result.scores[0] * len(tokens) / (len(tokens) + 1))
    no_speech_prob = finite_probability(row.result.no_speech_prob)
    compression_ratio = get_compression_ratio(row.tokenizer.decode(tokens).strip())
    segments = [
        Segment(
            start=text.start,
            end=text.end,
            text=row.tokenizer.decode(text.tokens),
            tokens=text.tokens,
            temperature=row.decoding.temperature,
            avg_logprob=avg_logprob,
            compression_ratio=compression_ratio,
            no_speech_prob=no_speech_prob,
            words=words,
        )
        for text, words in zip(row.texts, row.words, strict=True)
    ]
    return WindowResult(
        language=row.language,
        language_probs=language_probs,
        segments=tuple(segments if row.closed else segments[:-1]),
        tail=None if row.closed else segments[-1],
        token_count=len(tokens),
        avg_logprob=avg_logprob,
        no_speech_prob=no_speech_prob,
        compression_ratio=compression_ratio,
        thresholds=thresholds,
    )
