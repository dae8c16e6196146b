"""The Whisper worker: load a model once, then hear batches of clips."""

import gc
import json
import os
from bisect import bisect_right
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.messages import (
    SAMPLE_RATE,
    Clip,
    ClipResult,
    Decoding,
    LoadOptions,
    Segment,
    Word,
    WorkerInfo,
)
from workers.runtime import give_back_freed_memory, keep_freed_memory, preload_cublas
from workers.whisper.clip_decoding import (
    Piece,
    Thresholds,
    Window,
    WindowResult,
    decode_clip,
    split_at_timestamps,
)
from workers.whisper.compute_types import choose, smaller

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from faster_whisper.tokenizer import Tokenizer

# Figures of openai-whisper (`decoding.py`, `transcribe.py`).
_SUPPRESS_NON_SPEECH = -1
_MAX_INITIAL_TIMESTAMP_INDEX = 50  # 1.0 s
_SAMPLES_DRAWN = 5  # at temperature > 0; the likeliest is taken
_SAMPLES_PER_MEL_FRAME = SAMPLE_RATE // 100
_PREPENDED_PUNCTUATION = "\"'“¿([{-"
_APPENDED_PUNCTUATION = "\"'.。,，!！?？:：”)]}、"

_LEFT_TO_CTRANSLATE2 = ("auto", "default")

LanguageProbs = tuple[tuple[str, float], ...]

_loads = 0
_listeners: "dict[str, LoadedModel]" = {}  # by the model's name


def supported_compute_types(device: str) -> set[str]:
    """The compute types that CTranslate2 offers on `device` ("cuda": on the first visible GPU)."""
    _prepare(device)
    import ctranslate2

    return set(ctranslate2.get_supported_compute_types(device))


def load(options: LoadOptions) -> WorkerInfo:
    """Load a model that this process will serve. Raises what CTranslate2 raises."""
    global _loads
    _prepare(options.device)
    listener = _listeners[options.model] = LoadedModel(options)
    _loads += 1
    return WorkerInfo(
        pid=os.getpid(),
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        model=options.model,
        device=options.device,
        compute_type=listener.compute_type,
        loads=_loads,
        languages=listener.languages,
    )


def unload(model: str) -> None:
    """Give back the memory of a model; one that is not loaded is no error."""
    _listeners.pop(model, None)
    gc.collect()
    # Nothing as large may come for hours.
    give_back_freed_memory()


def transcribe(clips: Sequence[Clip]) -> list[ClipResult]:
    """Hear a batch of clips, whatever their jobs and languages; results in the clips' order.

    All clips must have the same `batch_key`. Raises RuntimeError where their model is not loaded.
    """
    model = clips[0].decoding.model
    if model not in _listeners:
        raise RuntimeError(f"the model {model!r} is not loaded in this worker")
    return _listeners[model].transcribe(clips)


def smaller_compute_type(options: LoadOptions) -> str | None:
    """The compute type with which the model takes less memory, as far as the device has one."""
    compute_type = _compute_type(options)
    if compute_type in _LEFT_TO_CTRANSLATE2:
        listener = _listeners.get(options.model)
        # For a model that could not even be loaded, the largest is assumed.
        compute_type = listener.compute_type if listener else "float32"
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
class _Request:
    """A clip, its listening, and the window that the listening waits for."""

    clip: Clip
    listening: Generator[Window, WindowResult, ClipResult]
    window: Window

    @property
    def decoding(self) -> Decoding:
        return self.clip.decoding

    @property
    def samples(self) -> int:
        return self.window.end - self.window.start


@dataclass(slots=True)
class _Row:
    """What a batch row came to."""

    request: _Request
    language: str
    tokenizer: "Tokenizer"
    result: Any  # ctranslate2.models.WhisperGenerationResult
    pieces: list[Piece]
    closed: bool  # False: the last piece was cut off
    words: list[tuple[Word, ...]]  # of each piece

    def text_tokens(self) -> list[list[int]]:
        return [[token for token in piece.tokens if token < self.tokenizer.eot] for piece in self.pieces]


class LoadedModel:
    """One loaded model. Carries nothing from one batch to the next."""

    def __init__(self, options: LoadOptions) -> None:
        from faster_whisper import WhisperModel
        from faster_whisper.transcribe import get_suppressed_tokens

        self._whisper = WhisperModel(
            options.path,
            device=options.device,
            compute_type=_compute_type(options),
            cpu_threads=options.cpu_threads,
            local_files_only=True,
        )
        self.compute_type: str = self._whisper.model.compute_type
        self.languages = _languages(self._whisper)
        self._thresholds = _thresholds(Path(options.path))
        self._threads = ThreadPoolExecutor(options.cpu_threads, "features")
        self._tokenizers: dict[tuple[str, str], Tokenizer] = {}
        self._suppressed = get_suppressed_tokens(self._tokenizer("en", "transcribe"), [_SUPPRESS_NON_SPEECH])

    def transcribe(self, clips: Sequence[Clip]) -> list[ClipResult]:
        """Hear all clips, the current window of each in one batch with the others'."""
        results: dict[int, ClipResult] = {}
        waiting: dict[int, _Request] = {}
        for index, clip in enumerate(clips):
            understood = self._adapt_to_model(clip)
            listening = decode_clip(understood)
            waiting[index] = _Request(understood, listening, next(listening))
        while waiting:
            for group in self._groups(waiting):
                heard = self._hear([waiting[index] for index in group])
                for index, one in zip(group, heard, strict=True):
                    try:
                        waiting[index].window = waiting[index].listening.send(one)
                    except StopIteration as done:
                        results[index] = done.value
                        del waiting[index]
        return [results[index] for index in range(len(clips))]

    def _adapt_to_model(self, clip: Clip) -> Clip:
        """A clip's decoding, as far as the model can follow it: a language that it lacks is detected."""
        decoding = clip.decoding
        if self.languages == ("en",):
            decoding = replace(decoding, language="en", task="transcribe")
        elif decoding.language not in self.languages:
            decoding = replace(decoding, language=None)
        return replace(clip, decoding=decoding)

    def _groups(self, waiting: dict[int, _Request]) -> list[list[int]]:
        """What can be decoded at once: CTranslate2 wants prompts of one length, and one set of options."""
        groups: dict[tuple[int, int], list[int]] = {}
        for index, request in waiting.items():
            key = (len(self._prompt(request.decoding, "en")), request.window.no_repeat_ngram_size)
            groups.setdefault(key, []).append(index)
        return list(groups.values())

    def _hear(self, requests: Sequence[_Request]) -> list[WindowResult]:
        """Decode one window of each request."""
        import ctranslate2

        features = self._features(requests)
        encoded = self._whisper.model.encode(ctranslate2.StorageView.from_array(features))
        detected = self._languages(requests, encoded)
        languages = [r.window.language or probs[0][0] for r, probs in zip(requests, detected, strict=True)]
        generated = self._whisper.model.generate(
            encoded,
            [self._prompt(r.decoding, language) for r, language in zip(requests, languages, strict=True)],
            no_repeat_ngram_size=requests[0].window.no_repeat_ngram_size,
            max_length=self._whisper.max_length,
            return_scores=True,
            return_no_speech_prob=True,
            suppress_tokens=self._suppressed,
            max_initial_timestamp_index=_MAX_INITIAL_TIMESTAMP_INDEX,
            **_search(requests[0].decoding),
        )
        rows = [
            self._row(request, language, result)
            for request, language, result in zip(requests, languages, generated, strict=True)
        ]
        self._align(rows, encoded)
        return [_heard(row, probs, self._thresholds) for row, probs in zip(rows, detected, strict=True)]

    def _row(self, request: _Request, language: str, result: Any) -> _Row:
        tokenizer = self._tokenizer(language, request.decoding.task)
        tokens = result.sequences_ids[0]
        closed, rest = split_at_timestamps(tokens, tokenizer.timestamp_begin, request.samples)
        pieces = [*closed, rest] if rest else closed
        return _Row(request, language, tokenizer, result, pieces, rest is None, [()] * len(pieces))

    def _align(self, rows: Sequence[_Row], encoded: Any) -> None:
        """Give the rows that want them their words, with times in samples from the window's start.

        CTranslate2 aligns all rows behind one start sequence: so there is one pass for each, in which the
        rows of the others have no text. Rows do not influence one another.
        """
        frames = [max(1, row.request.samples // _SAMPLES_PER_MEL_FRAME) for row in rows]
        wanting = [row for row in rows if row.pieces and row.request.decoding.word_timestamps]
        for tokenizer in {id(row.tokenizer): row.tokenizer for row in wanting}.values():
            mine = [row in wanting and row.tokenizer is tokenizer for row in rows]
            texts = [row.text_tokens() if own else [] for row, own in zip(rows, mine, strict=True)]
            aligned = self._whisper.find_alignment(
                tokenizer, [list(chain(*text)) for text in texts], encoded, frames
            )
            for row, own, text, timings in zip(rows, mine, texts, aligned, strict=True):
                if own:
                    row.words = _assign_words(timings, [len(tokens) for tokens in text])

    def _features(self, requests: Sequence[_Request]) -> "npt.NDArray[np.float32]":
        """The windows' log-mel spectrograms: shape (windows, mel bins, 3000). Meanwhile the device waits."""
        import numpy as np

        return np.stack(list(self._threads.map(self._spectrogram, requests)))

    def _spectrogram(self, request: _Request) -> "npt.NDArray[np.float32]":
        """The window's log-mel spectrogram, padded to 30 s: shape (mel bins, 3000)."""
        import numpy as np

        window = request.window
        pcm = np.frombuffer(request.clip.pcm, "<i2")[window.start : window.end]
        extractor = self._whisper.feature_extractor
        features = extractor(pcm.astype(np.float32) / 32768)[:, : extractor.nb_max_frames]
        return np.pad(features, ((0, 0), (0, extractor.nb_max_frames - features.shape[1])))

    def _languages(self, requests: Sequence[_Request], encoded: Any) -> list[LanguageProbs]:
        """The likeliest languages of each window, likeliest first; empty where none is asked for."""
        if all(request.window.language for request in requests):
            return [()] * len(requests)
        detected = self._whisper.model.detect_language(encoded)
        return [
            () if request.window.language else tuple((token[2:-2], prob) for token, prob in probs[:10])
            for request, probs in zip(requests, detected, strict=True)
        ]

    def _prompt(self, decoding: Decoding, language: str) -> list[int]:
        """Hot words and prompt, as far as there is room for both, and the task."""
        tokenizer = self._tokenizer(language, decoding.task)
        room = self._whisper.max_length // 2 - 1
        hotwords = _plain_tokens(tokenizer, decoding.hotwords)[:room]
        text = _plain_tokens(tokenizer, decoding.prompt)
        context = [*hotwords, *text[max(0, len(text) - room + len(hotwords)) :]]
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


def _languages(whisper: Any) -> tuple[str, ...]:
    """The languages whose tokens a model has: some models lack some of Whisper's."""
    if not whisper.model.is_multilingual:
        return ("en",)
    known = whisper.hf_tokenizer.token_to_id
    return tuple(code for code in whisper.supported_languages if known(f"<|{code}|>") is not None)


def _plain_tokens(tokenizer: "Tokenizer", text: str | None) -> list[int]:
    """The tokens of a text; what looks like one of the decoder's own control tokens is left out."""
    return [token for token in tokenizer.encode(f" {text.strip()}") if token < tokenizer.eot] if text else []


def _search(decoding: Decoding) -> dict[str, Any]:
    if decoding.temperature > 0:
        return {
            "beam_size": 1,
            "num_hypotheses": _SAMPLES_DRAWN,
            "sampling_topk": 0,
            "sampling_temperature": decoding.temperature,
        }
    return {"beam_size": decoding.beam_size}


def _thresholds(folder: Path) -> Thresholds:
    """The model's own thresholds, where its folder has a `generation_config.json` that names any."""
    path = folder / "generation_config.json"
    config = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    named = {field.name: config.get(f"{field.name}_threshold") for field in fields(Thresholds)}
    return Thresholds(**{name: value for name, value in named.items() if value is not None})


def _heard(row: _Row, language_probs: LanguageProbs, thresholds: Thresholds) -> WindowResult:
    from faster_whisper.transcribe import get_compression_ratio

    tokens = row.result.sequences_ids[0]
    # CTranslate2's score is the mean over the tokens; Whisper counts the end of text among them.
    avg_logprob = row.result.scores[0] * len(tokens) / (len(tokens) + 1)
    compression_ratio = get_compression_ratio(row.tokenizer.decode(tokens).strip())
    segments = [
        Segment(
            start=piece.start,
            end=piece.end,
            text=row.tokenizer.decode(piece.tokens),
            tokens=piece.tokens,
            temperature=row.request.decoding.temperature,
            avg_logprob=avg_logprob,
            compression_ratio=compression_ratio,
            no_speech_prob=row.result.no_speech_prob,
            words=words,
        )
        for piece, words in zip(row.pieces, row.words, strict=True)
    ]
    return WindowResult(
        language=row.language,
        language_probs=language_probs,
        segments=tuple(segments if row.closed else segments[:-1]),
        tail=None if row.closed else segments[-1],
        token_count=len(tokens),
        avg_logprob=avg_logprob,
        no_speech_prob=row.result.no_speech_prob,
        compression_ratio=compression_ratio,
        thresholds=thresholds,
    )


def _assign_words(timings: Sequence[dict[str, Any]], lengths: Sequence[int]) -> list[tuple[Word, ...]]:
    """Deal a window's aligned words out to its pieces, whose lengths in text tokens are given."""
    from faster_whisper.transcribe import merge_punctuations

    hands: list[list[dict[str, Any]]] = [[] for _ in lengths]
    last_tokens = list(accumulate(lengths))
    dealt = 0
    for timing in timings:
        hands[bisect_right(last_tokens, dealt)].append(timing)
        dealt += len(timing["tokens"])
    for hand in hands:
        merge_punctuations(hand, _PREPENDED_PUNCTUATION, _APPENDED_PUNCTUATION)
    return [tuple(_word(timing) for timing in hand if timing["word"]) for hand in hands]


def _word(timing: dict[str, Any]) -> Word:
    return Word(
        text=timing["word"],
        start=round(timing["start"] * SAMPLE_RATE),
        end=round(timing["end"] * SAMPLE_RATE),
        probability=float(timing["probability"]),
    )
