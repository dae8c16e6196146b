"""A Whisper model: decodes the windows of a batch together."""

import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers import calls
from workers.causes import Cause, cause_of
from workers.messages import (
    LOWEST_LOGPROB,
    SAMPLE_RATE,
    SAMPLED_TEXTS,
    DecodingOptions,
    LoadOptions,
    Segment,
    Thresholds,
    Window,
    WindowResult,
    Word,
)
from workers.whisper.alignment import ALIGNMENT_ERRORS, assign_words
from workers.whisper.model_check import check_files, missing_word_times
from workers.whisper.results import (
    LanguageProbs,
    TimestampedText,
    rank_languages,
    score,
    split_at_timestamps,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from faster_whisper.tokenizer import Tokenizer

# Constants of openai-whisper (`decoding.py`, `transcribe.py`).
_SUPPRESS_NON_SPEECH = -1
_MAX_INITIAL_TIMESTAMP_INDEX = 50  # 1.0 s
_SAMPLES_PER_MEL_FRAME = SAMPLE_RATE // 100
_MAX_LANGUAGES = 10  # of a window's result
_MOST_PAUSE_S = 1.0  # of a batch that lets an urgent one pass, before each of its steps

# Of all models, which share the device.
_no_urgent = threading.Event()  # set unless an urgent batch is being decoded
_no_urgent.set()


@dataclass(slots=True)
class _Row:
    """A row of a batch after decoding: one window."""

    window: Window
    language: str
    language_probs: LanguageProbs
    tokenizer: "Tokenizer"
    result: Any  # ctranslate2.models.WhisperGenerationResult
    texts: list[TimestampedText]
    closed: bool  # whether the last text has a closing timestamp
    words: list[tuple[Word, ...]]  # of each text
    note: str | None = None  # why there are none


class LoadedModel:
    """One loaded model. Keeps no state between batches."""

    def __init__(self, options: LoadOptions, compute_type: str) -> None:
        """Load the model with a compute type that CTranslate2 knows. Raises as `worker.load` does."""
        from faster_whisper import WhisperModel
        from faster_whisper.transcribe import get_suppressed_tokens

        check_files(Path(options.path))
        self.note = missing_word_times(Path(options.path))
        # On a GPU, CTranslate2 works on the host for most of the time: it lists the tokens that a timestamp
        # excludes, row by row. So threads decode parts of a batch. On a CPU they all work on each row.
        self._parts = options.cpu_threads if options.device == "cuda" else 1
        self._whisper = WhisperModel(
            options.path,
            device=options.device,
            compute_type=compute_type,
            cpu_threads=options.cpu_threads,
            num_workers=2 * self._parts,  # for an urgent batch beside another
            local_files_only=True,
        )
        self.compute_type: str = self._whisper.model.compute_type
        self.languages = _supported_languages(self._whisper)
        self._thresholds = _read_thresholds(Path(options.path))
        self._threads = options.cpu_threads
        self._encoding = threading.Lock()
        self._tokenizers: dict[tuple[str, str], Tokenizer] = {}
        self._suppressed = get_suppressed_tokens(self._tokenizer("en", "transcribe"), [_SUPPRESS_NON_SPEECH])

    def features(self, windows: Sequence[Window]) -> "list[npt.NDArray[np.float32]]":
        """The log-mel spectrogram of each window, padded to its audio context: shape (mel bins, frames).

        All threads compute them.
        """
        # A pool of its own: those of another batch do not wait for these.
        with calls.measured("features"), ThreadPoolExecutor(self._threads, "features") as pool:
            return list(pool.map(self._spectrogram, windows))

    def decode(
        self, windows: Sequence[Window], features: "Sequence[npt.NDArray[np.float32]]", urgent: bool = False
    ) -> list[WindowResult]:
        """The transcripts of a batch of windows, given the features of each. Raises CTranslate2's errors.

        While a batch that is `urgent` is decoded, those that are not begin no step of their computation. Only
        one urgent batch may be decoded at a time.
        """
        windows = [self._adapt_to_model(window) for window in windows]
        groups: dict[int, list[int]] = {}  # places of windows; CTranslate2 needs prompts of one length
        for place, window in enumerate(windows):
            groups.setdefault(len(self._prompt(window.decoding, "en")), []).append(place)
        parts = [
            group[first :: self._parts]
            for group in groups.values()
            for first in range(min(self._parts, len(group)))
        ]
        passing = _passing() if urgent else nullcontext()
        with passing, ThreadPoolExecutor(self._parts, "decoder") as pool:
            decoded = [
                pool.submit(
                    copy_context().run,
                    self._decode_together,
                    [windows[at] for at in part],
                    [features[at] for at in part],
                    urgent,
                )
                for part in parts
            ]
        results: dict[int, WindowResult] = {}
        for part, results_of_part in zip(parts, decoded, strict=True):
            results |= zip(part, results_of_part.result(), strict=True)
        return [results[at] for at in range(len(windows))]

    def _adapt_to_model(self, window: Window) -> Window:
        """Replace options that the model does not support: a language that it lacks is detected instead."""
        decoding = window.decoding
        if self.languages == ("en",):
            decoding = replace(decoding, language="en", task="transcribe")
        elif decoding.language not in self.languages:
            decoding = replace(decoding, language=None)
        return replace(window, decoding=decoding)

    def _decode_together(
        self, windows: Sequence[Window], features: "Sequence[npt.NDArray[np.float32]]", urgent: bool
    ) -> list[WindowResult]:
        """Decode windows whose prompts have one length."""
        import ctranslate2
        import numpy as np

        # That takes all of a GPU. So the parts take turns, and an urgent batch finds one of them at most.
        with nullcontext() if urgent else self._encoding:
            _let_pass(urgent)
            with calls.measured("encode"):
                encoded = self._whisper.model.encode(ctranslate2.StorageView.from_array(np.stack(features)))
        with calls.measured("detect language"):
            detected = self._detect_languages(windows, encoded)
        languages = [
            window.decoding.language or probs[0][0] for window, probs in zip(windows, detected, strict=True)
        ]
        prompts = [
            self._prompt(window.decoding, language)
            for window, language in zip(windows, languages, strict=True)
        ]
        _let_pass(urgent)
        with calls.measured("generate text"):
            generated = self._whisper.model.generate(
                encoded,
                prompts,
                max_length=self._whisper.max_length,
                return_scores=True,
                return_no_speech_prob=True,
                suppress_tokens=self._suppressed,
                max_initial_timestamp_index=_MAX_INITIAL_TIMESTAMP_INDEX,
                **_search_options(windows[0].decoding),
            )
        rows = [self._row(*parts) for parts in zip(windows, languages, detected, generated, strict=True)]
        _let_pass(urgent)
        with calls.measured("align words"):
            self._align_words(rows, encoded)
        return [_window_result(row, self._thresholds) for row in rows]

    def _row(self, window: Window, language: str, language_probs: LanguageProbs, result: Any) -> _Row:
        tokenizer = self._tokenizer(language, window.decoding.task)
        closed, rest = split_at_timestamps(result.sequences_ids[0], tokenizer.timestamp_begin, window.samples)
        texts = [*closed, rest] if rest else closed
        no_words: list[tuple[Word, ...]] = [()] * len(texts)
        return _Row(window, language, language_probs, tokenizer, result, texts, rest is None, no_words)

    def _align_words(self, rows: Sequence[_Row], encoded: Any) -> None:
        """Set the words of the rows that need them, with times in samples from the window's start.

        CTranslate2 aligns all rows with one start sequence, so each language and task needs its own pass.
        In it, the rows of the others have no text. Rows do not influence one another.
        """
        if self.note is not None:
            return
        with_words = [row for row in rows if row.texts and row.window.decoding.word_timestamps]
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
        frames = [max(1, row.window.samples // _SAMPLES_PER_MEL_FRAME) for row in rows]
        aligned = self._whisper.find_alignment(
            tokenizer, [list(chain(*texts)) for texts in tokens], encoded, frames
        )
        for row, own, texts, timings in zip(rows, in_pass, tokens, aligned, strict=True):
            if own:
                row.words = assign_words(timings, [len(text) for text in texts])

    def _spectrogram(self, window: Window) -> "npt.NDArray[np.float32]":
        import numpy as np

        extractor = self._whisper.feature_extractor
        pcm = np.frombuffer(window.pcm, "<i2")
        frames = window.decoding.context_s * SAMPLE_RATE // _SAMPLES_PER_MEL_FRAME
        features = extractor(pcm.astype(np.float32) / 32768)[:, :frames]
        return np.pad(features, ((0, 0), (0, frames - features.shape[1])))

    def _detect_languages(self, windows: Sequence[Window], encoded: Any) -> list[LanguageProbs]:
        """The likeliest languages of each window, likeliest first; empty if its language is known."""
        if all(window.decoding.language for window in windows):
            return [()] * len(windows)
        detected = self._whisper.model.detect_language(encoded)
        return [
            ()
            if window.decoding.language
            else rank_languages((token[2:-2], prob) for token, prob in probs)[:_MAX_LANGUAGES]
            for window, probs in zip(windows, detected, strict=True)
        ]

    def _prompt(self, decoding: DecodingOptions, language: str) -> list[int]:
        """The decoder's start tokens: hot words and prompt, cut to the model's limit, then the task."""
        tokenizer = self._tokenizer(language, decoding.task)
        limit = self._whisper.max_length // 2 - 1
        # Without the control tokens that a text may spell.
        hotwords, text = (
            [token for token in tokenizer.encode(f" {said.strip()}") if token < tokenizer.eot] if said else []
            for said in (decoding.hotwords, decoding.prompt)
        )
        hotwords = hotwords[:limit]
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


@contextmanager
def _passing() -> Iterator[None]:
    """For an urgent batch: let the others wait before their next steps."""
    _no_urgent.clear()
    try:
        yield
    finally:
        _no_urgent.set()


def _let_pass(urgent: bool) -> None:
    """Before a step of a batch that is not urgent: wait for the urgent one that is being decoded, if any."""
    if not urgent:
        _no_urgent.wait(_MOST_PAUSE_S)


def _supported_languages(whisper: Any) -> tuple[str, ...]:
    """The languages for which the model has a token: some models lack some of Whisper's."""
    if not whisper.model.is_multilingual:
        return ("en",)
    token_id = whisper.hf_tokenizer.token_to_id
    return tuple(code for code in whisper.supported_languages if token_id(f"<|{code}|>") is not None)


def _search_options(decoding: DecodingOptions) -> dict[str, Any]:
    options: dict[str, Any] = {"no_repeat_ngram_size": decoding.no_repeat_ngram_size}
    if decoding.temperature > 0:
        return options | {
            "beam_size": 1,
            "num_hypotheses": SAMPLED_TEXTS,
            "sampling_topk": 0,
            "sampling_temperature": decoding.temperature,
        }
    return options | {"beam_size": decoding.beam_size}


def _read_thresholds(folder: Path) -> Thresholds:
    """The thresholds in the model's `generation_config.json`; defaults for those that it does not name."""
    path = folder / "generation_config.json"
    config = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    named = {field.name: config.get(f"{field.name}_threshold") for field in fields(Thresholds)}
    return Thresholds(**{name: value for name, value in named.items() if value is not None})


def _window_result(row: _Row, thresholds: Thresholds) -> WindowResult:
    from faster_whisper.transcribe import get_compression_ratio

    tokens = row.result.sequences_ids[0]
    # CTranslate2's score is the mean over the tokens; Whisper also counts the end of text.
    avg_logprob = score(row.result.scores[0] * len(tokens) / (len(tokens) + 1), LOWEST_LOGPROB)
    no_speech_prob = score(row.result.no_speech_prob, 0.0)
    compression_ratio = get_compression_ratio(row.tokenizer.decode(tokens).strip())
    segments = [
        Segment(
            start=text.start,
            end=text.end,
            text=row.tokenizer.decode(text.tokens),
            tokens=text.tokens,
            temperature=row.window.decoding.temperature,
            avg_logprob=avg_logprob,
            compression_ratio=compression_ratio,
            no_speech_prob=no_speech_prob,
            words=words,
        )
        for text, words in zip(row.texts, row.words, strict=True)
    ]
    return WindowResult(
        language=row.language,
        language_probs=row.language_probs,
        segments=tuple(segments if row.closed else segments[:-1]),
        tail=None if row.closed else segments[-1],
        token_count=len(tokens),
        avg_logprob=avg_logprob,
        no_speech_prob=no_speech_prob,
        compression_ratio=compression_ratio,
        thresholds=thresholds,
        note=row.note,
    )
