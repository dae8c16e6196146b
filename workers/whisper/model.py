"""A Whisper model: decodes the windows of a batch together."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workers import calls
from workers.causes import Cause, cause_of
from workers.messages import (
    LOWEST_LOGPROB,
    DecodingOptions,
    LanguageProbs,
    LoadOptions,
    Segment,
    Span,
    Thresholds,
    Window,
    WindowResult,
    Word,
)
from workers.whisper.alignment import ALIGNMENT_ERRORS, words_of_texts
from workers.whisper.backend import (
    MAX_SLICE_FRAMES,
    MAX_TOKENS,
    MIN_SLICE_FRAMES,
    Generated,
    Search,
    Slice,
    SpecialTokens,
    TextToAlign,
    WhisperBackend,
)
from workers.whisper.model_check import check_files, missing_word_times
from workers.whisper.results import (
    SAMPLES_PER_TIMESTAMP,
    TimestampedText,
    leading_spaces,
    likeliest,
    score,
    split_at_timestamps,
)

if TYPE_CHECKING:
    import tokenizers
    from faster_whisper.tokenizer import Tokenizer

_SUPPRESS_NON_SPEECH = -1  # a constant of openai-whisper (`decoding.py`)
# Quiet windows become as loud as others: soft consonants vanish in the floor of Whisper's spectrograms.
# Without that, tiny.en has 1.3 points more word errors at -50 dBFS than at full level.
_QUIET = 328  # of int16: -40 dBFS. Louder windows are left as they are.
_RAISED = 5827  # -15 dBFS
_LEAST = 33  # -60 dBFS: quieter windows are raised by no more than this


@dataclass(slots=True)
class _DecodedWindow:
    """A row of a batch after decoding: one window."""

    window: Window
    detected: WindowResult  # its languages, and no text yet
    tokenizer: "Tokenizer"
    result: Generated
    texts: list[TimestampedText]
    spoken: list[list[int]]  # the tokens of each text, without timestamps
    closed: bool  # whether the last text has a closing timestamp
    words: list[tuple[Word, ...]]  # of each text
    note: str | None = None  # why there are none

    def to_align(self) -> TextToAlign | None:
        """The text whose words need times; None if none do."""
        if not self.texts or not self.window.decoding.word_timestamps:
            return None
        return TextToAlign(
            tuple(self.tokenizer.sot_sequence),
            tuple(chain(*self.spoken)),
            self.window.samples // SAMPLES_PER_TIMESTAMP,  # the encoder's frames are as long
        )


class LoadedModel:
    """One loaded model of any backend. Keeps no state between batches."""

    def __init__(self, options: LoadOptions, compute_type: str) -> None:
        """Load the model with a compute type that its backend knows. Raises as `worker.load` does."""
        import tokenizers

        folder = Path(options.path)
        check_files(folder)
        self.note = missing_word_times(folder)  # what every result lacks, and why
        self.backend = options.backend
        self._hf_tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.network = _open_backend(options, compute_type, _special_tokens(self._hf_tokenizer))
        self.compute_type = self.network.compute_type
        self.batch_size = self.network.batch_size
        self.languages = self._supported_languages()  # ISO 639-1
        self._thresholds = _read_thresholds(folder)
        self._tokenizers: dict[tuple[str, str], Tokenizer] = {}

    def decode(self, windows: Sequence[Window]) -> list[WindowResult]:
        """The transcripts of windows with one `batch_key`, in order. Raises the errors of its backend."""
        windows = [self._adapt_to_model(window) for window in windows]
        # Prompts are equally long in all languages.
        lengths = [len(self._prompt(window.decoding, self.languages[0])) for window in windows]
        parts = self.network.divide(lengths, windows[0].decoding.beams) if windows else []
        decode = [partial(self._decode_together, [windows[at] for at in part]) for part in parts]
        if self.network.threads == 1:  # this one: cuDNN's plans belong to a thread
            decoded = [of_part() for of_part in decode]
        else:
            with ThreadPoolExecutor(self.network.threads, "decoder") as pool:
                decoded = [
                    future.result()
                    for future in [pool.submit(copy_context().run, of_part) for of_part in decode]
                ]
        results: dict[int, WindowResult] = {}
        for part, results_of_part in zip(parts, decoded, strict=True):
            results |= zip(part, results_of_part, strict=True)
        return [results[at] for at in range(len(windows))]

    def close(self) -> None:
        """Free the model's memory."""
        self.network.close()

    def _adapt_to_model(self, window: Window) -> Window:
        """Replace options that the model does not support: a language that it lacks is detected instead."""
        decoding = window.decoding
        if self.languages == ("en",):
            decoding = replace(decoding, language="en", task="transcribe")
            window = replace(window, stretches=())
        elif decoding.language not in self.languages:
            decoding = replace(decoding, language=None)
        return replace(window, decoding=decoding)

    def _decode_together(self, windows: Sequence[Window]) -> list[WindowResult]:
        """Decode windows that the backend has put together."""
        decoding = windows[0].decoding
        encoded = self.network.encode([raised(window.pcm) for window in windows], decoding.context_s)
        with calls.measured("detect language"):
            detected = self._detect_languages(windows, encoded)
        if decoding.language_only:
            return detected
        prompts = [
            self._prompt(window.decoding, found.language)
            for window, found in zip(windows, detected, strict=True)
        ]
        search = Search(decoding.beams, decoding.temperature, decoding.no_repeat_ngram_size)
        with calls.measured("generate text"):
            generated = self.network.generate(encoded, prompts, search)
        rows = [self._row(*parts) for parts in zip(windows, detected, generated, strict=True)]
        with calls.measured("align words"):
            self._align_words(rows, encoded)
        return [_window_result(row, self._thresholds) for row in rows]

    def _row(self, window: Window, detected: WindowResult, result: Generated) -> _DecodedWindow:
        tokenizer = self._tokenizer(detected.language, window.decoding.task)
        closed, rest = split_at_timestamps(result.tokens, tokenizer.timestamp_begin, window.samples)
        texts = [*closed, rest] if rest else closed
        spoken = [[token for token in text.tokens if token < tokenizer.eot] for text in texts]
        words: list[tuple[Word, ...]] = [()] * len(texts)
        return _DecodedWindow(window, detected, tokenizer, result, texts, spoken, rest is None, words)

    def _align_words(self, rows: Sequence[_DecodedWindow], encoded: Any) -> None:
        """Set the words of the rows that need them, with times in samples from the window's start."""
        texts = [row.to_align() for row in rows]
        if self.note is not None or not any(texts):
            return
        for row, aligned in zip(rows, self.network.align(encoded, texts), strict=True):
            try:
                if isinstance(aligned, Exception):
                    raise aligned
                if aligned is not None:
                    row.words = words_of_texts(row.tokenizer, row.spoken, aligned)
            except ALIGNMENT_ERRORS as error:
                if cause_of(error) is not Cause.TASK:
                    raise
                row.note = f"no word times: {error}"

    def _detect_languages(self, windows: Sequence[Window], encoded: Any) -> list[WindowResult]:
        """The language of each window and the likeliest ones of its stretches, without text."""
        are_known = all(window.decoding.language for window in windows)
        found = [[]] * len(windows) if are_known else self.network.detect_language(encoded)
        of_stretches = self._detect_in_stretches(windows, encoded)
        detected = []
        for window, each, stretch_probs in zip(windows, found, of_stretches, strict=True):
            language = window.decoding.language
            probs = () if language else likeliest(each, window.decoding.languages)
            detected.append(WindowResult(language or probs[0][0], probs, stretch_probs=stretch_probs))
        return detected

    def _detect_in_stretches(
        self, windows: Sequence[Window], encoded: Any
    ) -> list[tuple[LanguageProbs, ...]]:
        """The likeliest languages of each stretch, none if it is short: the decoder sees only its frames."""
        parts = [
            [_slice(place, stretch) for stretch in window.stretches] for place, window in enumerate(windows)
        ]
        slices = [part for part in chain(*parts) if part.frames >= MIN_SLICE_FRAMES]
        detected = self.network.detect_in_slices(encoded, slices) if slices else []
        found = dict(zip(slices, detected, strict=True))
        return [
            tuple(likeliest(found.get(part, ()), window.decoding.languages) for part in of_window)
            for window, of_window in zip(windows, parts, strict=True)
        ]

    def _prompt(self, decoding: DecodingOptions, language: str) -> list[int]:
        """The decoder's start tokens: hot words and prompt, cut to the model's limit, then the task."""
        tokenizer = self._tokenizer(language, decoding.task)
        limit = MAX_TOKENS // 2 - 1
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
                self._hf_tokenizer, self.network.multilingual, task=task, language=language
            )
        return self._tokenizers[key]

    def _supported_languages(self) -> tuple[str, ...]:
        """The languages for which the model has a token: some models lack some of Whisper's."""
        from faster_whisper.tokenizer import _LANGUAGE_CODES

        if not self.network.multilingual:
            return ("en",)
        token_id = self._hf_tokenizer.token_to_id
        return tuple(code for code in _LANGUAGE_CODES if token_id(f"<|{code}|>") is not None)


def _open_backend(options: LoadOptions, compute_type: str, tokens: SpecialTokens) -> WhisperBackend:
    if options.backend == "torch":
        from workers.whisper.torch.torch_backend import TorchBackend

        return TorchBackend(options, compute_type, tokens)
    from workers.whisper.ctranslate2 import CTranslate2Backend

    return CTranslate2Backend(options, compute_type, tokens)


def _special_tokens(hf_tokenizer: "tokenizers.Tokenizer") -> SpecialTokens:
    from faster_whisper.tokenizer import Tokenizer
    from faster_whisper.transcribe import get_suppressed_tokens

    tokenizer = Tokenizer(hf_tokenizer, multilingual=False)  # these tokens depend on no language
    return SpecialTokens(
        sot=tokenizer.sot,
        eot=tokenizer.eot,
        no_timestamps=tokenizer.no_timestamps,
        no_speech=tokenizer.no_speech,
        suppressed=get_suppressed_tokens(tokenizer, [_SUPPRESS_NON_SPEECH]),
    )


def raised(pcm: bytes) -> bytes:
    """The samples of a window, int16, little-endian: raised, and without the offset of the signal, if quiet.

    They are raised by a whole number, so nothing is rounded.
    """
    samples = np.frombuffer(pcm, "<i2")
    if not len(samples) or int(samples.max()) - int(samples.min()) >= 2 * _QUIET:
        return pcm
    centred = samples.astype(np.int32) - round(float(samples.mean()))
    factor = _RAISED // max(_LEAST, int(np.abs(centred).max()))
    return (centred * factor).astype("<i2").tobytes()


def _slice(place: int, stretch: Span) -> Slice:
    """The first frames of a stretch of the window at a place."""
    start, end = (edge // SAMPLES_PER_TIMESTAMP for edge in stretch)  # the encoder's frames are as long
    return Slice(place, start, min(end - start, MAX_SLICE_FRAMES))


def _read_thresholds(folder: Path) -> Thresholds:
    """The thresholds in the model's `generation_config.json`; defaults for those that it does not name."""
    path = folder / "generation_config.json"
    config = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    named = {field.name: config.get(f"{field.name}_threshold") for field in fields(Thresholds)}
    return Thresholds(**{name: value for name, value in named.items() if value is not None})


def _window_result(row: _DecodedWindow, thresholds: Thresholds) -> WindowResult:
    from faster_whisper.transcribe import get_compression_ratio

    tokens = row.result.tokens
    # CTranslate2's score is the mean over the tokens; Whisper also counts the end of text.
    avg_logprob = score(row.result.score * len(tokens) / (len(tokens) + 1), LOWEST_LOGPROB)
    no_speech_prob = score(row.result.no_speech_prob, 0.0)
    compression_ratio = get_compression_ratio(row.tokenizer.decode(tokens).strip())
    texts = [row.tokenizer.decode(text.tokens) for text in row.texts]
    spaces = leading_spaces(texts, "en" if row.window.decoding.task == "translate" else row.detected.language)
    segments = [
        Segment(
            start=text.start,
            end=text.end,
            text=space + said,
            tokens=text.tokens,
            temperature=row.window.decoding.temperature,
            avg_logprob=avg_logprob,
            compression_ratio=compression_ratio,
            no_speech_prob=no_speech_prob,
            words=(replace(words[0], text=space + words[0].text), *words[1:]) if space and words else words,
        )
        for text, words, said, space in zip(row.texts, row.words, texts, spaces, strict=True)
    ]
    return replace(
        row.detected,
        segments=tuple(segments if row.closed else segments[:-1]),
        tail=None if row.closed else segments[-1],
        token_count=len(tokens),
        avg_logprob=avg_logprob,
        no_speech_prob=no_speech_prob,
        compression_ratio=compression_ratio,
        thresholds=thresholds,
        note=row.note,
    )
