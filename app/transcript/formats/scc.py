"""Scenarist closed captions: CEA-608 as text, for broadcasters in America.

ttconv has the codes. Its own writer drops captions that follow too closely and has no extended characters,
so this module decides when each code is sent.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from ttconv.scc.codes.control_codes import SccControlCode
from ttconv.scc.codes.extended_characters import SccExtendedCharacter
from ttconv.scc.codes.preambles_address_codes import SccPreambleAddressCode
from ttconv.scc.codes.special_characters import SccSpecialCharacter
from ttconv.scc.codes.standard_characters import TO_SCC_BYTES
from ttconv.time_code import FPS_29_97, SmpteTimeCode

from app.transcript.cues.timing import Cue
from app.transcript.formats import SCC_COLUMNS
from app.transcript.formats.common import FileCue, FileStyle, timed_cues
from app.transcript.formats.narrow import CharacterSet, narrow_cues
from app.transcript.timeline import Transcript

ROWS = 15  # of the picture
MAX_ROWS = 4  # of a caption
_LATE_CUE = 15  # frames that a cue stays if it appears when its end has nearly passed, or until the next one

BytePair = int  # what a frame carries
Code = tuple[BytePair, ...]  # what must be sent without a break

# ttconv names three characters by their looks in one font. CEA-608 says what they mean.
_MEANINGS = {"\u2501": "—", "\u028c": "^", "\u2503": "¦"}
_STANDARD: dict[str, int] = dict(TO_SCC_BYTES)
_SPECIAL: dict[str, BytePair] = {
    code.get_unicode_value(): code.get_ch1_value()
    for code in SccSpecialCharacter
    if code.get_unicode_value() not in _STANDARD
}
_EXTENDED: dict[str, BytePair] = {
    char: code.get_ch1_value()
    for code in SccExtendedCharacter
    if (char := _MEANINGS.get(code.get_unicode_value(), code.get_unicode_value())) not in _STANDARD
}
_CHARACTERS = CharacterSet("SCC", {*_STANDARD, *_SPECIAL, *_EXTENDED})
_TABS = (None, SccControlCode.TO1, SccControlCode.TO2, SccControlCode.TO3)


def write_scc(transcript: Transcript, cues: Iterable[Cue], style: FileStyle) -> Iterator[str]:
    """SCC with pop-on captions on channel 1 and drop-frame time codes; only its header without cues.

    A frame carries two bytes, so a caption takes up to two seconds to send. It appears late by the part of
    this time that the caption before it leaves no frames for. What changes the screen has a line, and so a
    time, of its own: programs take the time of a line for that of all in it. Raises `UnsuitableFormat`.
    """
    yield "Scenarist_SCC V1.0\n\n"
    for frame, codes in _schedule(scc_cues(cues, style)):
        for _, group in groupby(codes, (_ERASE, _SHOW).__contains__):
            words = [word for code in group for word in code]
            code = SmpteTimeCode.from_frames(frame, FPS_29_97, True)
            yield f"{code}\t{' '.join(map(_with_parity, words))}\n\n"
            frame += len(words)


def scc_cues(cues: Iterable[Cue], style: FileStyle) -> Iterator[FileCue]:
    """The captions, with the frames in which they are due. Raises `UnsuitableFormat`."""
    return timed_cues(narrow_cues(cues, _CHARACTERS, SCC_COLUMNS, min(style.max_lines, MAX_ROWS)), FPS_29_97)


def _schedule(cues: Iterable[FileCue]) -> Iterator[tuple[int, Sequence[Code]]]:
    """Codes with the frame in which the first of them is sent. They never overlap."""
    free = 0  # the first frame that carries nothing yet
    erase_at: int | None = None  # when the caption on the screen is to go
    for cue in cues:
        load = _load(cue.lines)
        shown = max(cue.start, free + _length(load))
        if erase_at is not None and erase_at + len(_ERASE) <= shown - _length(load):
            yield max(erase_at, free), [_ERASE]
            free = max(erase_at, free) + len(_ERASE)
        elif erase_at is not None and erase_at < shown - 1:
            load = _with_erase(load, erase_at - max(free, shown - _length(load) - len(_ERASE)))
        # Otherwise the new caption replaces the old one.
        begin = max(free, cue.start - _length(load))
        shown = begin + _length(load)
        yield begin, [*load, _SHOW]
        free = shown + len(_SHOW)
        late = shown > cue.start
        erase_at = max(cue.end, shown + min(cue.end - cue.start, _LATE_CUE)) if late else cue.end
    if erase_at is not None:
        yield max(erase_at, free), [_ERASE]


def _control(code: BytePair) -> Code:
    """A control code. Receivers ignore its repetition, which is for those that missed it."""
    return (code, code)


_ERASE = _control(SccControlCode.EDM.get_ch1_value())
_SHOW = _control(SccControlCode.EOC.get_ch1_value())
_START = (_control(SccControlCode.RCL.get_ch1_value()), _control(SccControlCode.ENM.get_ch1_value()))


def _length(codes: Iterable[Code]) -> int:
    return sum(map(len, codes))


def _with_erase(load: Sequence[Code], position: int) -> list[Code]:
    """The codes with one that erases the screen, at about this number of words."""
    at = 0
    for index, code in enumerate(load):
        if at >= position:
            return [*load[:index], _ERASE, *load[index:]]
        at += len(code)
    return [*load, _ERASE]


def _load(lines: Sequence[str]) -> list[Code]:
    """The codes that load a caption: its lines at the bottom of the picture, in the middle."""
    codes = list(_START)
    for row, line in enumerate(lines, start=ROWS + 1 - len(lines)):
        indent, tab = divmod((SCC_COLUMNS - len(line)) // 2, 4)
        codes.append(_control(SccPreambleAddressCode(1, row, indent=4 * indent).get_ch1_packet()))
        if tab_code := _TABS[tab]:
            codes.append(_control(tab_code.get_ch1_value()))
        codes.extend(_text(line))
    return codes


def _text(line: str) -> Iterator[Code]:
    """The codes of a line. Standard characters take a byte each, others a word, which is repeated."""
    single: int | None = None  # the first byte of an unfinished word
    for char in line:
        standard = _STANDARD.get(char)
        extended = _EXTENDED.get(char)
        if extended is not None:
            standard = _fallback(char)  # an extended character overwrites the one before it
        if standard is not None:
            if single is None:
                single = standard
            else:
                yield (single << 8 | standard,)
                single = None
        if standard is None or extended is not None:
            if single is not None:
                yield (single << 8,)
                single = None
            yield _control(_SPECIAL[char] if extended is None else extended)
    if single is not None:
        yield (single << 8,)


def _fallback(char: str) -> int:
    """What receivers without extended characters show: the letter without its accent, or a space."""
    return _STANDARD.get(unicodedata.normalize("NFD", char)[0], _STANDARD[" "])


def _with_parity(word: BytePair) -> str:
    """The word in hexadecimal, with odd parity in the highest bit of each byte."""
    return "".join(f"{byte | (not byte.bit_count() % 2) << 7:02x}" for byte in word.to_bytes(2, "big"))
