"""Convert Chinese text to the script that a request asks for, by OpenCC.

Only for Chinese: OpenCC would convert Japanese kanji, too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate, pairwise
from typing import Any, Literal

from workers.messages import Segment, Word

Script = Literal["keep", "traditional", "simplified"]

LANGUAGES = frozenset({"zh", "yue"})
_CONFIGS = {"traditional": "s2t", "simplified": "t2s"}


def convert_text(text: str, script: Script) -> str:
    """The text in that script. Other text stays as it is."""
    if script == "keep" or text.isascii():
        return text
    converted: str = _converter(_CONFIGS[script]).convert(text)
    return converted


def convert_segments(segments: Iterable[Segment], script: Script, language: str) -> tuple[Segment, ...]:
    """The segments, those in Chinese with their text, and the text of their words, in that script.

    `language`: of segments that name none.
    """
    return tuple(
        _convert_segment(segment, script) if (segment.language or language) in LANGUAGES else segment
        for segment in segments
    )


def _convert_segment(segment: Segment, script: Script) -> Segment:
    texts = _convert_parts([word.text for word in segment.words], script)
    words = tuple(
        Word(text, word.start, word.end, word.probability)
        for word, text in zip(segment.words, texts, strict=True)
    )
    return replace(segment, text=convert_text(segment.text, script), words=words)


def _convert_parts(texts: Sequence[str], script: Script) -> list[str]:
    """The texts, converted together: the right character depends on the phrase, and phrases span words."""
    joined = "".join(texts)
    converted = convert_text(joined, script)
    if len(converted) != len(joined):  # the borders between the words are lost
        return [convert_text(text, script) for text in texts]
    borders = accumulate((len(text) for text in texts), initial=0)
    return [converted[begin:end] for begin, end in pairwise(borders)]


@cache
def _converter(config: str) -> Any:
    # Imported only when needed: its dictionaries take memory.
    from opencc import OpenCC

    return OpenCC(config)
