"""One of several sound tracks, and a part of a recording."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.media_files import GOOD, RATE, Pcm, encode, film, read_pcm
from tests.workers.media.decoding import read, steps_of
from workers.media.decode import decoded_pcm
from workers.media.findings import Findings
from workers.messages import MAX_TRACKS, Decoded, RecordingRefused, Selection

SPEECH = read_pcm(Path(__file__).parents[2] / "data" / "short01.flac")
FILM = {"ger": SPEECH, "eng": SPEECH[::-1].copy(), "jpn": SPEECH // 2}


def decode(path: Path, selection: Selection, *, step: int = RATE, **more: bool) -> tuple[list[Decoded], Pcm]:
    pcm_path = path.with_suffix(".pcm")
    return steps_of(path, [pcm_path], step, selection=selection, **more), read(pcm_path)


@pytest.fixture(scope="module")
def three_tracks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("film") / "film.mkv"
    path.write_bytes(film(FILM, default=1))
    return path


@pytest.fixture(scope="module")
def flac(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flac") / "talk.flac"
    path.write_bytes(GOOD["flac"].encode(SPEECH))
    return path


@pytest.mark.parametrize(
    ("track", "language"),
    [
        (0, "ger"),
        (2, "jpn"),
        (("de", "ger", "deu", "german"), "ger"),
        (("ja", "jpn"), "jpn"),
        (None, "eng"),  # the file's own choice
    ],
)
def test_a_track_is_chosen_by_place_or_language(
    track: int | tuple[str, ...] | None, language: str, three_tracks: Path
) -> None:
    steps, pcm = decode(three_tracks, Selection(track))
    assert np.array_equal(pcm[: len(SPEECH)], FILM[language])
    assert [(each.index, each.language, each.default) for each in steps[0].tracks] == [
        (0, "ger", False),
        (1, "eng", True),
        (2, "jpn", False),
    ]
    assert all(step.tracks == steps[0].tracks for step in steps)


def test_of_several_in_a_language_the_default_one(tmp_path: Path) -> None:
    path = tmp_path / "film.mkv"
    path.write_bytes(film({"eng": SPEECH, "en": SPEECH // 3, "fre": SPEECH // 2}, default=1))
    _, pcm = decode(path, Selection(("en", "eng")))
    assert np.array_equal(pcm[: len(SPEECH)], SPEECH // 3)


@pytest.mark.parametrize(
    ("languages", "wanted", "found"),
    [
        (("eng", "yue", "chi"), ("zh", "zh", "chi", "zh-yue"), "chi"),
        (("eng", "yue"), ("zh", "zh", "chi", "zh-yue"), "yue"),
        (("bre", "por"), ("pt-br", "pt", "por"), "por"),
    ],
)
def test_a_variety_of_a_language_does_if_there_is_nothing_else(
    languages: tuple[str, ...], wanted: tuple[str, ...], found: str, tmp_path: Path
) -> None:
    sounds = {language: np.roll(SPEECH, number * RATE) for number, language in enumerate(languages)}
    path = tmp_path / "film.mkv"
    path.write_bytes(film(sounds))
    _, pcm = decode(path, Selection(wanted))
    assert np.array_equal(pcm[: len(SPEECH)], sounds[found])


@pytest.mark.parametrize("track", [None, ("de", "deu", "ger")])
def test_of_several_default_tracks_the_first_that_can_be_decoded(
    track: tuple[str, ...] | None, tmp_path: Path
) -> None:
    content = film({"ger": SPEECH, "deu": SPEECH[::-1].copy(), "eng": SPEECH // 2}, default=range(3))
    path = tmp_path / "film.mkv"
    path.write_bytes(content)
    _, pcm = decode(path, Selection(track))
    assert np.array_equal(pcm[: len(SPEECH)], SPEECH)

    path.write_bytes(content.replace(b"A_FLAC", b"A_NONE", 1))
    steps, pcm = decode(path, Selection(track))
    assert np.array_equal(pcm[: len(SPEECH)], SPEECH[::-1])
    assert [each.codec for each in steps[0].tracks] == [None, "flac", "flac"]
    with pytest.raises(RecordingRefused) as refused:
        decode(path, Selection(0))
    assert refused.value.code == "unsupported_codec"


def test_of_many_tracks_the_first_are_listed_and_all_can_be_chosen(tmp_path: Path) -> None:
    path = tmp_path / "film.mkv"
    path.write_bytes(film({f"q{number:02}": SPEECH[: RATE // 4] * (number == 70) for number in range(71)}))
    steps, pcm = decode(path, Selection(("q70",)))
    assert pcm.any()
    assert [track.index for track in steps[0].tracks] == list(range(MAX_TRACKS))
    [warning] = steps[-1].warnings
    assert (warning.code, warning.start) == ("tracks", None)
    assert warning.message == "The file has 71 sound tracks; the first 64 are listed."


@pytest.mark.parametrize(
    ("track", "named"), [(3, "no sound track 3"), (("fr", "fre", "fra"), "no sound track in 'fr'")]
)
def test_a_track_that_is_not_there_is_refused_with_those_that_are(
    track: int | tuple[str, ...], named: str, three_tracks: Path
) -> None:
    with pytest.raises(RecordingRefused) as refused:
        decode(three_tracks, Selection(track))
    assert refused.value.code == "no_such_track"
    assert named in refused.value.message
    assert "0 (ger), 1 (eng), 2 (jpn)" in refused.value.message


@pytest.mark.parametrize("raw", [False, True])
def test_a_single_track_is_number_0(raw: bool, flac: Path, tmp_path: Path) -> None:
    path = flac
    if raw:
        path = tmp_path / "upload"
        path.write_bytes(SPEECH.tobytes())
    _, pcm = decode(path, Selection(0), raw=raw)
    assert np.array_equal(pcm, SPEECH)
    with pytest.raises(RecordingRefused, match="no sound track 1"):
        decode(path, Selection(1), raw=raw)


@given(
    start=st.integers(0, len(SPEECH) - RATE // 10),
    length=st.none() | st.integers(RATE // 10, len(SPEECH)),
    step=st.integers(100, 2 * len(SPEECH)),
)
@settings(max_examples=30, deadline=None)
def test_a_part_keeps_its_place_and_nothing_around_it(
    flac: Path, start: int, length: int | None, step: int
) -> None:
    end = None if length is None else start + length
    steps, pcm = decode(flac, Selection(None, start, end), step=step)
    last = len(SPEECH) if end is None else min(end, len(SPEECH))
    assert len(pcm) == steps[-1].samples == last
    assert not pcm[:start].any()
    assert np.array_equal(pcm[start:], SPEECH[start:last])
    assert steps[0].declared == (len(SPEECH) if end is None else min(end, len(SPEECH)))


@pytest.fixture(scope="module")
def long() -> Pcm:
    return np.resize(SPEECH, 20 * RATE)


SKIPPING = [
    *("wav 32 bit 44.1 kHz", "wav u-law 8 kHz", "w64", "caf", "aiff", "flac 48 kHz stereo", "amr", "3gp amr"),
    *(
        "mp3 16 kHz",
        "mp3 44.1 kHz stereo",
        "m4a alac",
        "m4a aac",
        "aac adts",
        "fragmented mp4",
        "mov video pcm",
    ),
]


@pytest.mark.parametrize("name", [*SKIPPING, "wav adpcm", "ogg opus", "webm opus", "mka flac"])
def test_a_part_has_the_samples_of_the_whole_although_what_precedes_it_is_skipped(
    name: str, long: Pcm, tmp_path: Path
) -> None:
    path = tmp_path / "talk"
    path.write_bytes(GOOD[name].encode(long))
    chunks = decoded_pcm(path, findings := Findings(), start_s=13.9)
    next(chunks)
    assert (findings.skipped_s, [*findings.warnings()]) == (12 if name in SKIPPING else 0, [])
    chunks.close()
    start, end = 14 * RATE - 77, 19 * RATE
    _, whole = decode(path, Selection(None, 0, end))
    steps, part = decode(path, Selection(None, start, end), find_peaks=False)
    assert (steps[-1].samples, len(part)) == (end, end)
    if GOOD[name].options["codec"] == "aac":  # its decoder adds noise that depends on what precedes
        assert np.corrcoef(part[start:], whole[start:])[0, 1] > 0.999
    else:
        assert np.array_equal(part[start:], whole[start:])


def test_a_part_after_the_end_and_in_damaged_timestamps_is_found_by_decoding(
    long: Pcm, tmp_path: Path
) -> None:
    path = tmp_path / "talk"
    path.write_bytes(GOOD["m4a alac"].encode(long))
    with pytest.raises(RecordingRefused, match=r"ends at 20\.\d\d s"):
        decode(path, Selection(start=50 * RATE), find_peaks=False)
    path.write_bytes(encode(long, "mp4", "alac", clock_jumps={10: 7.0}))
    start = 14 * RATE  # in the silence of the jump
    _, whole = decode(path, Selection())
    _, part = decode(path, Selection(start=start), find_peaks=False)
    assert np.array_equal(part[start:], whole[start:])


def test_what_precedes_a_part_takes_no_space(flac: Path) -> None:
    path = flac.with_suffix(".pcm")
    start = len(SPEECH) - RATE // 5
    decode(flac, Selection(start=start))
    status = path.stat()
    assert status.st_size == 2 * len(SPEECH)
    assert status.st_blocks * 512 < status.st_size // 4


def test_what_a_failed_seek_finds_is_not_reported(flac: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def seek(second: int, container: object, stream: object, findings: Findings) -> None:
        findings.damage()

    monkeypatch.setattr("workers.media.decode._frames_around", seek)
    assert b"".join(decoded_pcm(flac, findings := Findings(), start_s=3.0)) == SPEECH.tobytes()
    assert (findings.damaged, [*findings.warnings()]) == (0, [])
