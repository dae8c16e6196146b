"""Spaces between texts whose own were stripped. Pure."""

from collections.abc import Iterable, Iterator

from app.transcript.break_points import ends_sentence
from app.transcript.scripts import is_unspaced


def with_spaces(texts: Iterable[str], some_have_spaces: bool) -> Iterator[str]:
    """The texts, none empty, with a space before each that needs one: they can be joined as they are.

    Where some texts begin with a space, one that does not continues the text before it, unless that ended a
    sentence: whisperX drops the spaces between sentences.
    """
    before = ""
    for text in texts:
        if before and _is_space_missing(before, text) and (not some_have_spaces or _ends_sentence(before)):
            text = f" {text}"
        yield text
        before = text


def _is_space_missing(before: str, after: str) -> bool:
    return not (
        before[-1].isspace() or after[0].isspace() or is_unspaced(before[-1]) or is_unspaced(after[0])
    )


def _ends_sentence(text: str) -> bool:
    return ends_sentence(text.split()[-1])
