"""SCC and EBU-STL, read back by ttconv and FFmpeg."""

import io
import re
import unicodedata
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise

import av
import pytest
import ttconv.scc.reader
import ttconv.stl.reader
from hypothesis import assume, example, given
from hypothesis import strategies as st
from transcript_cases import render_bytes, samples, segment, span, spoken, text_in
from ttconv.time_code import FPS_29_97, SmpteTimeCode

from app.common.errors import InvalidInput, UnsuitableFormat
from app.common.options import Options
from app.transcript.cues.lines import SHORTEST_CUE
from app.transcript.cues.timing import Cue
from app.transcript.formats import narrow
from app.transcript.formats.common import FileStyle
from app.transcript.rendering import render_transcript
from app.transcript.timeline import Transcript
from tests.cases import read_cases
from workers.messages import SAMPLE_RATE

CASES = read_cases("transcripts")
FRAME = {"scc": Fraction(1001, 30_000), "stl": Fraction(1, 25)}
MAX_CHARS = {"scc": 32, "stl": 37}
SIMILAR_IN_TTCONV = str.maketrans("━ʌ┃", "—^¦")  # its names for three characters of CEA-608

Read = tuple[float, float, list[str]]


def transcript_in(language: str, *segments: object) -> Transcript:
    return Transcript("transcribe", "demo", language, samples(3600), (), segments)  # type: ignore[arg-type]


def read(file_format: str, file: bytes) -> list[Read]:
    """Start and end (s) and lines of each subtitle, as ttconv reads them."""
    if file_format == "scc":
        document = ttconv.scc.reader.to_model(file.decode("ascii"))
    else:
        document = ttconv.stl.reader.to_model(io.BytesIO(file))
    return [
        (float(cue.get_begin()), float(cue.get_end()), text_in(cue).translate(SIMILAR_IN_TTCONV).split("\n"))
        for division in document.get_body()
        for cue in division
    ]


def written(
    file_format: str, cues: Iterable[Cue], language: str = "en", style: FileStyle = FileStyle()
) -> bytes:
    return render_bytes(transcript_in(language), cues, file_format, style)


def lines_read(file_format: str, *lines: str) -> list[str]:
    """The lines of a cue as they are read back."""
    (cue,) = read(file_format, written(file_format, [Cue(*span(10, 14), lines)]))
    return cue[2]


# Every character of CEA-608: standard, special and extended.
CEA_608 = (
    "!\"#$%&'()+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz"
    "áéíóúç÷Ññ█®°½¿™¢£♪àèâêîôûÁÉÓÚÜü‘¡*—©℠•“”ÀÂÇÈÊËëÎÏïÔÙùÛ«»ÃãÍÌìÒòÕõ{}\\^_|~ÄäÖöß¥¤¦ÅåØø┏┓┗┛"
)


@pytest.mark.parametrize("at", range(0, len(CEA_608), 32))
def test_scc_has_every_character_of_cea_608(at: int) -> None:
    line = CEA_608[at : at + 32]
    assert lines_read("scc", line) == [line]


def test_scc_as_ffmpeg_reads_it() -> None:
    """FFmpeg follows the standard where ttconv is lenient: extended characters overwrite another one."""
    lines = ("“Ça va”, ñandú Ü^|~ aé—", "♪ Größe ♪ 100%")
    file = written("scc", [Cue(*span(10, 12), lines), Cue(*span(12.2, 14), ("Next",))])
    with av.open(io.BytesIO(file), format="scc") as container:
        events = [sub.ass.decode() for packet in container.demux() for sub in packet.decode()]
    texts = [re.sub(r"{[^}]*}|\\h", "", event.split(",,")[-1]) for event in events]
    assert texts == ["“Ça va”, ñandú Ü^|~ aé-\\N♪ Größe ♪ 100%", "Next"]  # it shows a dash as a hyphen


def test_ffmpeg_shows_scc_when_ttconv_does() -> None:
    """FFmpeg takes the time of a line for that of all codes in it."""
    cues = [
        Cue(*span(5, 7), ("x" * 32, "y" * 32)),
        Cue(*span(7.2, 9), ("z" * 32,)),
        Cue(*span(9, 10), ("a",)),
    ]
    file = written("scc", cues)
    with av.open(io.BytesIO(file), format="scc") as container:
        decoder = container.streams.subtitles[0].codec_context
        shown = [found for packet in container.demux() if (found := decoder.decode2(packet))]
    assert len(shown) == len(cues)
    for sub, (start, end, _) in zip(shown, read("scc", file), strict=True):
        times = (sub.pts / 1e6, sub.pts / 1e6 + sub.end_display_time / 1000)
        assert times == pytest.approx((start, end), abs=0.05)


def test_scc_file() -> None:
    file = written("scc", [Cue(*span(60, 62), ("Hé",))]).decode()
    assert file == (
        "Scenarist_SCC V1.0\n\n"
        "00:00:59;19\t9420 9420 94ae 94ae 9476 9476 9723 9723 c8dc\n\n"
        "00:00:59;28\t942f 942f\n\n"
        "00:01:02;00\t942c 942c\n\n"
    )
    assert written("scc", ()) == b"Scenarist_SCC V1.0\n\n"


@pytest.mark.parametrize(
    ("frame", "code"),
    [(1799, "00:00:59;29"), (1800, "00:01:00;02"), (17_981, "00:09:59;29"), (17_982, "00:10:00;00")],
)
def test_scc_times_are_drop_frame(frame: int, code: str) -> None:
    end = round(frame * FRAME["scc"] * SAMPLE_RATE)
    file = written("scc", [Cue(end - samples(2), end, ("a",))]).decode()
    assert file.endswith(f"{code}\t942c 942c\n\n")


# Words that fit a short line, in any order; pauses that leave time to send a caption.
_WORDS = st.text(st.sampled_from(CEA_608), min_size=1, max_size=10)
_LINES = st.lists(_WORDS, min_size=1, max_size=2).map(" ".join)


@st.composite
def slow_cues(draw: st.DrawFn) -> list[Cue]:
    cues, at = [], draw(st.integers(samples(4), samples(3500)))
    for gap, length, lines in draw(
        st.lists(
            st.tuples(
                st.integers(samples(2 / 24), samples(3)),
                st.integers(samples(4), samples(7)),
                st.lists(_LINES, min_size=1, max_size=2),
            ),
            max_size=6,
        )
    ):
        cues.append(Cue(at + gap, at + gap + length, tuple(lines)))
        at += gap + length
    return cues


@given(slow_cues())
def test_scc_with_time_to_send_is_right_to_a_frame(cues: list[Cue]) -> None:
    shown = read("scc", written("scc", cues))
    assert [lines for _, _, lines in shown] == [list(cue.lines) for cue in cues]
    for cue, (start, end, _) in zip(cues, shown, strict=True):
        assert start == pytest.approx(cue.start / SAMPLE_RATE, abs=float(FRAME["scc"]))
        assert end == pytest.approx(cue.end / SAMPLE_RATE, abs=2 * float(FRAME["scc"]))


@st.composite
def dense_cues(draw: st.DrawFn) -> list[Cue]:
    cues, at = [], draw(st.integers(0, samples(2)))
    for gap, length, line in draw(
        st.lists(st.tuples(st.integers(0, samples(2)), st.integers(1, samples(2)), _LINES), max_size=8)
    ):
        cues.append(Cue(at + gap, at + gap + length, (line,)))
        at += gap + length
    return cues


@given(dense_cues())
@example([Cue(0, 1, ("first",)), Cue(*span(20, 21), ("third",))])
@example(
    [
        Cue(0, samples(0.4), ("first",)),
        Cue(samples(0.5), samples(0.6), ("second",)),
        Cue(*span(20, 21), ("third",)),
    ]
)
def test_scc_without_time_to_send_is_late_and_complete(cues: list[Cue]) -> None:
    file = written("scc", cues)
    shown = read("scc", file)
    assert [lines for _, _, lines in shown] == [list(cue.lines) for cue in cues]
    for cue, (start, end, _) in zip(cues, shown, strict=True):
        assert start >= (cue.start / SAMPLE_RATE) - FRAME["scc"]
        length = min((cue.end - cue.start) / SAMPLE_RATE, 0.3)  # the next one takes longer to send
        if all(other.end - other.start >= SHORTEST_CUE for other in cues):
            assert end - start >= length - 2 * FRAME["scc"]
        assert start < end
    sent = [line.split("\t") for line in file.decode().split("\n")[2:] if line]
    spans = [
        (first := SmpteTimeCode.parse(code, FPS_29_97).to_frames(), first + len(words.split()))
        for code, words in sent
    ]
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


# EBU-STL


def blocks_of(file: bytes) -> list[bytes]:
    assert len(file) >= 1024
    assert (len(file) - 1024) % 128 == 0
    return [file[at : at + 128] for at in range(1024, len(file), 128)]


def test_stl_blocks() -> None:
    file = written("stl", [Cue(*span(3661.4, 3663), ("Größe", "b"))], "de")
    general, (block,) = file[:1024], blocks_of(file)
    assert general.startswith(b"850STL25.0110008")
    assert re.fullmatch(rb"(\d{6})\1", general[224:236])  # created and changed on one day
    assert general[238:243] == b"00001"  # blocks
    assert general[243:248] == b"00001"  # subtitles
    assert general[256:264] == b"00000000"
    assert general[264:272] == b"01010110"  # the first subtitle
    text = b"\x0d\x0b\x0bGr\xc8o\xfbe\x0a\x0a\x8a\x8a\x0d\x0b\x0bb\x0a\x0a"
    assert block == (bytes([0, 1, 0, 0xFF, 0, 1, 1, 1, 10, 1, 1, 3, 0, 20, 2, 0]) + text.ljust(112, b"\x8f"))


@pytest.mark.parametrize("length", [1, 35, 36, 37])
def test_stl_rows_have_at_most_40_columns(length: int) -> None:
    (block,) = blocks_of(written("stl", [Cue(*span(1, 3), ("x" * length, "y" * length))]))
    rows = block[16:].rstrip(b"\x8f").split(b"\x8a\x8a")
    assert [row.strip(b"\x0a\x0b\x0d") for row in rows] == [b"x" * length, b"y" * length]
    assert all(len(row) <= 40 for row in rows)


def test_stl_keeps_a_mark_with_its_letter() -> None:
    cue = Cue(*span(1, 3), ("ب" * 36 + "بَ" + "ب" * 5,))  # the mark would be the first character of a line
    assert read("stl", written("stl", [cue]))[0][2] == ["ب" * 36, "بَ" + "ب" * 5]


def test_stl_without_cues() -> None:
    assert len(written("stl", ())) == 1024


@pytest.mark.parametrize(("language", "table", "line"), CASES["stl_tables"])
def test_stl_chooses_its_character_table_by_the_text(language: str, table: str, line: str) -> None:
    file = written("stl", [Cue(*span(1, 3), ("...",)), Cue(*span(4, 6), (line,))], language)
    assert file[12:14] == table.encode()
    assert read("stl", file)[1][2] == [line]


def test_stl_writes_similar_characters_if_a_table_lacks_them() -> None:
    assert lines_read("stl", "„Ja“ – nein … ‚a’") == ["\"Ja“ - nein ... 'a’"]
    assert lines_read("stl", "«Да» — “нет”…") == ['"Да" - "нет"...']
    assert lines_read("stl", "عام ١٩٨٤") == ["عام 1984"]
    assert lines_read("stl", "a\u200bb\u00adc e\u0301\xa0f") == ["abc é f"]


def test_stl_writes_long_text_in_extension_blocks() -> None:
    lines = tuple(char * 36 for char in "äöüß")
    file = written("stl", [Cue(*span(1, 5), lines), Cue(*span(6, 8), ("a",))], style=FileStyle(max_lines=4))
    assert [block[3] for block in blocks_of(file)] == [0, 1, 0xFF, 0xFF]
    assert [block[1] for block in blocks_of(file)] == [1, 1, 1, 2]
    assert [lines for _, _, lines in read("stl", file)] == [list(lines), ["a"]]


@pytest.mark.parametrize(
    ("fps", "name", "accuracy_s"),
    [
        (None, b"STL25.01", 0.02),
        (25, b"STL25.01", 0.02),
        (24, b"STL25.01", 0.02),
        (30000 / 1001, b"STL30.01", 0.017),
        (29.97, b"STL30.01", 0.017),
        (30, b"STL30.01", 0.1),  # ttconv takes these time codes for drop-frame ones
    ],
)
def test_stl_frame_rates(fps: float | None, name: bytes, accuracy_s: float) -> None:
    cues = [Cue(*span(at, at + 0.9), (str(at),)) for at in range(0, 3600, 7)]
    file = written("stl", cues, style=FileStyle(fps=fps))
    assert file[3:11] == name
    shown = read("stl", file)
    assert [lines for _, _, lines in shown] == [list(cue.lines) for cue in cues]
    for cue, (start, end, _) in zip(cues, shown, strict=True):
        assert start == pytest.approx(cue.start / SAMPLE_RATE, abs=accuracy_s + 0.001)
        assert end == pytest.approx(cue.end / SAMPLE_RATE, abs=accuracy_s + 0.001)


# Both


@pytest.mark.parametrize(("file_format", "text", "named"), CASES["lacking"])
def test_a_character_that_the_format_lacks(file_format: str, text: str, named: str) -> None:
    with pytest.raises(UnsuitableFormat) as caught:
        render_transcript(transcript_in("en", segment(2, 4, f" {text}")), Options(), file_format)
    assert isinstance(caught.value, InvalidInput)
    assert named in caught.value.message
    assert "srt, vtt or ttml" in caught.value.message
    assert caught.value.param == "format"


@pytest.mark.parametrize("file_format", ["scc", "stl"])
def test_a_transcript_of_more_than_a_day(file_format: str) -> None:
    day = 24 * 3600
    assert written(file_format, [Cue(*span(day - 2, day - 1), ("a",))])
    with pytest.raises(UnsuitableFormat, match="24 hours"):
        written(file_format, [Cue(*span(day - 1, day + 1), ("a",))])


@pytest.mark.parametrize("file_format", ["scc", "stl"])
def test_lines_keep_the_limit_of_the_format_whatever_the_options(file_format: str) -> None:
    text = "The committee has decided unanimously to postpone the extraordinary meeting until next Thursday."
    transcript = transcript_in("en", spoken(4, 11, text), spoken(12, 18, f"A {'w' * 100} end."))
    options = Options(max_line_chars=200, max_lines=2)
    lines = [lines for _, _, lines in read(file_format, render_transcript(transcript, options, file_format))]
    assert max(len(line) for cue in lines for line in cue) <= MAX_CHARS[file_format]
    assert max(map(len, lines)) <= 2
    assert "".join("".join("".join(cue) for cue in lines).split()) == "".join(
        f"{text}A {'w' * 100} end.".split()
    )
    short = transcript_in("en", spoken(4, 11, text))
    as_srt = render_transcript(short, Options(max_line_chars=MAX_CHARS[file_format]), "srt").decode()
    assert [lines for _, _, lines in read(file_format, render_transcript(short, options, file_format))] == [
        block.split("\n")[2:] for block in as_srt.strip().split("\n\n")
    ]  # broken at the same good places
    narrow = Options(max_line_chars=20)
    for _, _, cue in read(file_format, render_transcript(transcript, narrow, file_format)):
        assert all(len(line) <= 20 or "w" * 20 in line for line in cue)


@pytest.mark.parametrize("file_format", ["scc", "stl"])
def test_a_cue_of_too_many_lines_becomes_several_cues_in_its_time(file_format: str) -> None:
    cue = Cue(*span(10, 20), ("w" * 150,))
    shown = read(file_format, written(file_format, [cue]))
    assert ["".join(lines) for _, _, lines in shown] == [
        "w" * min(2 * MAX_CHARS[file_format], 150 - at) for at in range(0, 150, 2 * MAX_CHARS[file_format])
    ]
    assert shown[0][0] == pytest.approx(10, abs=0.04)
    assert shown[-1][1] == pytest.approx(20, abs=0.07)


_SIMILAR = {
    **dict.fromkeys("’‘‚‛`´", "'"),
    **dict.fromkeys("“”„‟«»", '"'),
    **dict.fromkeys("‐‑‒–—―−", "-"),
    "…": "...",
}
_ANY_TEXT = st.one_of(
    st.text(max_size=60),
    st.text(st.characters(codec="latin-1"), max_size=60),
    st.text("abc ’“„«–—…éßñ♪ .,!?-", max_size=80),
    st.text(st.sampled_from(CEA_608 + "  "), max_size=80),
    st.text("приветЁё ,.!«»—", max_size=80),
    st.text("שלום עולם ,.?!", max_size=60),
    st.text("مرحباَُ ،؟٠١", max_size=60),
    st.text("αβγΔΏ ώ,.;", max_size=60),
)


def comparable(text: str) -> str:
    """The letters of a text as a file may have them."""
    text = unicodedata.normalize("NFC", text)
    text = "".join(" " if unicodedata.category(char) in ("Cc", "Zl", "Zp") else char for char in text)
    text = re.sub("[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]", "", text)
    text = "".join("".join(_SIMILAR.get(char, char) for char in text).split())
    return "".join(str(unicodedata.digit(char)) if char in "٠١٢٣٤٥٦٧٨٩" else char for char in text)


@given(st.lists(st.lists(_ANY_TEXT, min_size=1, max_size=3), max_size=4))
@example([["♪♪♪"], ["ÉÉ", "ñññ"]])
@example([["¨", "´ `"], ["é¸"]])
@example([["a" * 31 + "é" * 40]])
@pytest.mark.parametrize("file_format", ["scc", "stl"])
def test_any_text_is_read_back_equal_or_refused_by_a_character_that_is_absent(
    file_format: str, texts: list[list[str]]
) -> None:
    assume(not re.search("[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]", str(texts)))
    cues = [Cue(*span(10 + 30 * at, 35 + 30 * at), tuple(lines)) for at, lines in enumerate(texts)]
    try:
        file = written(file_format, cues)
    except UnsuitableFormat as error:
        named = chr(int(re.search(r"\(U\+([0-9A-F]{4,6})\)", error.message)[1], 16))  # type: ignore[index]
        assert named in unicodedata.normalize("NFC", str("".join("".join(lines) for lines in texts)))
        table = {"Latin": 0, "Cyrillic": 5, "Arabic": 6, "Greek": 7, "Hebrew": 8}
        if file_format == "scc":
            assert named not in CEA_608
            return
        part = next(part for name, part in table.items() if name in error.message)
        if part:
            with pytest.raises(UnicodeEncodeError):
                named.encode(f"iso8859_{part}")
        else:
            with pytest.raises(UnsuitableFormat):
                written("stl", [Cue(*span(1, 2), ("é" * 20 + named,))])
        return
    shown = read(file_format, file)
    joined = "".join("".join(lines) for _, _, lines in shown)
    assert comparable(joined) == comparable("".join("\n".join(["", *lines]) for lines in texts))
    assert all(len(line) <= MAX_CHARS[file_format] for _, _, lines in shown for line in lines)
    assert all(len(lines) <= 2 for _, _, lines in shown)


@pytest.mark.parametrize(
    ("cues", "lines"),
    [
        (66_000, ("a",)),
        pytest.param(50_000, ("a" * 36,) * 4, marks=pytest.mark.soak),
    ],  # numbers of subtitles; of blocks, two for each of these
)
def test_stl_has_numbers_for_so_many_subtitles(cues: int, lines: tuple[str, ...]) -> None:
    many = [Cue(*span(at, at + 1), lines) for at in range(cues)]
    with pytest.raises(UnsuitableFormat, match=f"{cues:,}"):
        written("stl", many, style=FileStyle(max_lines=4))
    assert written("stl", many[:5], style=FileStyle(max_lines=4))


@pytest.mark.timeout(60)  # a quadratic case would take half an hour
def test_a_word_of_any_length_is_broken() -> None:
    lines = list(narrow._wrapped("x" * 30_000_000, 37))
    assert sum(map(len, lines)) == 30_000_000
    assert max(map(len, lines)) == 37
