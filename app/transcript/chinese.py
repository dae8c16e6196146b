"""Chinese text in the script that was asked for, by OpenCC.

For Chinese alone: Japanese kanji would be converted, too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate, pairwise
from typing import Any, Literal

from workers.messages import Segment

Script = Literal["keep", "traditional", "simplified"]

LANGUAGES = frozenset({"zh", "yue"})
_CONFIGS = {"traditional": "s2t", "simplified": "t2s"}


def convert_text(text: str, script: Script) -> str:
    """The text in that script; what is in it already, and what is not Chinese, stays."""
    if script == "keep" or text.isascii():
        return text
    converted: str = _converter(_CONFIGS[script]).convert(text)
    return converted


def convert_segments(segments: Iterable[Segment], script: Script) -> tuple[Segment, ...]:
    """The segments with their texts, and their words' texts, in that script."""
    if script == "keep":
        return tuple(segments)
    return tuple(_convert_segment(segment, script) for segment in segments)


def _convert_segment(segment: Segment, script: Script) -> Segment:
    texts = _convert_parts([word.text for word in segment.words], script)
    words = tuple(replace(word, text=text) for word, text in zip(segment.words, texts, strict=True))
    return replace(segment, text=convert_text(segment.text, script), words=words)


def _convert_parts(texts: Sequence[str], script: Script) -> list[str]:
    """The texts, converted as one: which character is right depends on the phrase, and phrases span words."""
    whole = "".join(texts)
    converted = convert_text(whole, script)
    if len(converted) != len(whole):  # the borders between the words are lost
        return [convert_text(text, script) for text in texts]
    borders = accumulate((len(text) for text in texts), initial=0)
    return [converted[begin:end] for begin, end in pairwise(borders)]


@cache
def _converter(config: str) -> Any:
    # Its dictionaries take memory: only a service that converts Chinese should load them.
    from opencc import OpenCC

    return OpenCC(config)
