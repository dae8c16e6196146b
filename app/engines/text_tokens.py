"""The tokens of text that no model decoded, in the vocabulary of a model. Loads its tokenizer alone."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path

import structlog

from app.engines.model_files import local_folder
from workers.messages import MAX_CLIP_SAMPLES, SAMPLE_RATE, Segment

_SAMPLES_PER_TIMESTAMP = SAMPLE_RATE // 50  # a timestamp token counts 20 ms

log = structlog.get_logger(__name__)


def with_tokens(segments: Iterable[Segment], model: str) -> Iterator[Segment]:
    """Segments, with tokens for those that have none: timestamp, text, timestamp, as models decode them.

    The timestamps count from the start of the segment. There are no tokens if the files of the model are not
    on this machine. Loads a file of some megabytes: let `Helper` call it.
    """
    look_up = cache(partial(_vocabulary, model))  # once, and only for a segment that needs it
    for segment in segments:
        vocabulary = None if segment.tokens else look_up()
        yield segment if vocabulary is None else replace(segment, tokens=vocabulary.tokens(segment))


class _Vocabulary:
    """The tokens of a model."""

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        end_of_text, before_times = map(self._tokenizer.token_to_id, ("<|endoftext|>", "<|notimestamps|>"))
        if end_of_text is None or before_times is None:
            raise ValueError("the vocabulary is not one of Whisper's")
        self._end_of_text = end_of_text  # the first token that is no text
        self._first_timestamp = before_times + 1

    def tokens(self, segment: Segment) -> tuple[int, ...]:
        """A segment's tokens, without control tokens that its text may spell."""
        ids = self._tokenizer.encode(segment.text, add_special_tokens=False).ids
        samples = min(segment.end - segment.start, MAX_CLIP_SAMPLES)
        end = self._first_timestamp + round(samples / _SAMPLES_PER_TIMESTAMP)
        return (self._first_timestamp, *(token for token in ids if token < self._end_of_text), end)


def _vocabulary(model: str) -> _Vocabulary | None:
    folder = local_folder(model)
    try:
        return None if folder is None else _load(folder)
    except Exception as error:  # the library raises nothing more specific
        log.warning("the tokenizer of a model cannot be read", model=model, error=repr(error))
        return None


_load = lru_cache(maxsize=4)(_Vocabulary)
