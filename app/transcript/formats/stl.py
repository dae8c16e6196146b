"""EBU-STL (EBU Tech 3264): teletext subtitles in binary blocks, for broadcasters in Europe."""

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from itertools import chain

from ttconv.time_code import FPS_29_97, SmpteTimeCode

from app.common.errors import UnsuitableFormat
from app.transcript.cues.timing import Cue
from app.transcript.formats import STL_COLUMNS
from app.transcript.formats.common import FileCue, FileStyle, timed_cues
from app.transcript.formats.narrow import narrow_cues, visible
from app.transcript.formats.stl_tables import CharacterTable, character_tables, language_number
from app.transcript.timeline import Transcript

ROWS = 23  # of the picture; each line takes two

# Subtitle group and number, extension block, cumulative status, time codes in and out, vertical position,
# justification, comment flag, text field.
_TEXT_BLOCK = struct.Struct("<BHBB4B4BBBB112s")
_TEXT_BYTES = 112
_LAST_BLOCK = 0xFF
_MOST_SUBTITLES = 0xFFFF  # two bytes hold the number of each
_MOST_BLOCKS = 99_999  # five digits hold their number
_CENTERED = 2

_BEGIN_ROW = b"\x0d\x0b\x0b"  # double height, start of the box, twice for receivers that miss one
_END_BOX = b"\x0a\x0a"
_NEW_ROW = b"\x8a\x8a"  # two rows down
_UNUSED = b"\x8f"


def write_stl(transcript: Transcript, cues: Iterable[Cue], style: FileStyle) -> Iterator[bytes]:
    """EBU-STL with double-height teletext, at 25 frames per second, or 30 if the style asks for 30 or 29.97.

    Raises `UnsuitableFormat` if no character table has all characters of the text, or if there are too many
    subtitles.
    """
    shown = list(cues)
    table = _choose_table(shown)
    rate, disk_format = _frame_rate(style.fps)
    timed = list(_in_table(shown, table, style))
    numbered = enumerate(timed[:_MOST_SUBTITLES], start=1)
    blocks = [_text_blocks(number, cue, table, rate) for number, cue in numbered]
    first = _time_code(timed[0].start, rate) if timed else (0, 0, 0, 0)
    block_count = sum(map(len, blocks))
    if len(timed) > _MOST_SUBTITLES or block_count > _MOST_BLOCKS:
        raise UnsuitableFormat(
            f"EBU-STL cannot hold as many subtitles as the transcript has, {len(timed):,}. Ask for srt, vtt "
            "or ttml instead.",
            param="format",
        )
    yield _general_block(transcript, disk_format, table, block_count, len(timed), first)
    yield from chain.from_iterable(blocks)


def stl_cues(cues: Iterable[Cue], style: FileStyle) -> Iterator[FileCue]:
    """The subtitles, in frames. Raises `UnsuitableFormat`."""
    shown = list(cues)
    return _in_table(shown, _choose_table(shown), style)


def _in_table(cues: Iterable[Cue], table: CharacterTable, style: FileStyle) -> Iterator[FileCue]:
    return timed_cues(narrow_cues(cues, table, STL_COLUMNS, style.max_lines), _frame_rate(style.fps)[0])


def _choose_table(cues: Sequence[Cue]) -> CharacterTable:
    """The table that lacks the fewest characters of the text; the first of several."""
    counts = Counter(char for cue in cues for line in cue.lines for char in visible(line))

    def lacks(table: CharacterTable) -> int:
        return sum(count for char, count in counts.items() if table.written(char) is None)

    return min(character_tables(), key=lacks)


def _frame_rate(fps: float | None) -> tuple[Fraction, str]:
    """The frame rate of the file, and its name for it."""
    if fps is not None and abs(fps - FPS_29_97) < 0.01:
        return FPS_29_97, "STL30.01"
    nominal = 30 if fps == 30 else 25
    return Fraction(nominal), f"STL{nominal}.01"


def _time_code(frame: int, rate: Fraction) -> tuple[int, int, int, int]:
    """Hours, minutes, seconds and frames."""
    code = SmpteTimeCode.from_frames(frame, rate, rate == FPS_29_97)
    return code.get_hours(), code.get_minutes(), code.get_seconds(), code.get_frames()


def _general_block(
    transcript: Transcript,
    disk_format: str,
    table: CharacterTable,
    blocks: int,
    subtitles: int,
    first: tuple[int, int, int, int],
) -> bytes:
    """The block at the beginning of the file (GSI). Fields without content are blank."""
    today = f"{datetime.now(UTC):%y%m%d}"
    fields = (
        ("850", 3),  # code page of this block
        (disk_format, 8),
        ("1", 1),  # level-1 teletext
        (table.number, 2),
        (language_number(transcript.text_language), 2),
        ("", 6 * 32),  # titles, and names of translators
        ("", 16),  # reference
        (today, 6),  # creation
        (today, 6),  # revision
        ("00", 2),  # revision number
        (f"{blocks:05}", 5),
        (f"{subtitles:05}", 5),
        ("001", 3),  # subtitle groups
        (f"{STL_COLUMNS:02}", 2),
        (f"{ROWS:02}", 2),
        ("1", 1),  # time codes are meant for use
        ("00000000", 8),  # time code of the beginning of the programme
        ("".join(f"{part:02}" for part in first), 8),
        ("11", 2),  # disks, and the number of this one
    )
    return b"".join(text.encode("cp850").ljust(width) for text, width in fields).ljust(1024)


def _text_blocks(number: int, cue: FileCue, table: CharacterTable, rate: Fraction) -> list[bytes]:
    """The blocks of a subtitle (TTI): the last one, and extension blocks before it if its text is long."""
    fields = _text_fields(cue.lines, table)
    vertical_position = ROWS + 1 - 2 * len(cue.lines)
    return [
        _TEXT_BLOCK.pack(
            *(0, number, _LAST_BLOCK if index == len(fields) - 1 else index, 0),
            *_time_code(cue.start, rate),
            *_time_code(cue.end, rate),
            *(vertical_position, _CENTERED, 0, field),
        )
        for index, field in enumerate(fields)
    ]


def _text_fields(lines: Sequence[str], table: CharacterTable) -> list[bytes]:
    """The text in fields of the right length. No character is cut in two."""
    fields, field = [], b""
    for code in _codes(lines, table):
        if len(field) + len(code) > _TEXT_BYTES:
            fields.append(field)
            field = b""
        field += code
    return [field.ljust(_TEXT_BYTES, _UNUSED) for field in (*fields, field)]


def _codes(lines: Sequence[str], table: CharacterTable) -> Iterator[bytes]:
    for index, line in enumerate(lines):
        if index:
            yield _NEW_ROW
        yield _BEGIN_ROW
        yield from (table.codes[char] for char in line)
        if len(line) + len(_END_BOX) <= STL_COLUMNS:  # the box ends with the row, too
            yield _END_BOX
