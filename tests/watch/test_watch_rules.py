"""Which recordings get a subtitle: globs, languages, lengths, and subtitles that are there."""

from typing import Any

import pytest

from app.common.options import Options
from app.watch.rules import Rules
from tests.cases import read_cases
from tests.watch.watched_folder import Watched, idle
from workers.media.streams import Streams

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

CASES = read_cases("watch")


def rules(**values: Any) -> Rules:
    return Rules(options=Options(), **values)


@pytest.mark.parametrize(("path", "wanted"), CASES["recordings"])
def test_recordings_by_name(path: str, wanted: bool) -> None:
    assert rules().wants(path) is wanted


@pytest.mark.parametrize(("include", "exclude", "path", "wanted"), CASES["globs"])
def test_globs(include: list[str], exclude: list[str], path: str, wanted: bool) -> None:
    assert rules(include=tuple(include), exclude=tuple(exclude)).wants(path) is wanted


async def run(watched: Watched, **values: Any) -> list[str]:
    """Watch the folder until nothing is left to do. Returns the lines."""
    async with watched.watch(**values) as watching:
        await idle(watching)
    return watched.report.lines


async def test_only_languages(watched: Watched) -> None:
    watched.add("film.mkv")
    [line] = await run(watched, only_languages=("de", "fr"))
    assert line == "skipped film.mkv (its language is English, not German or French)"
    assert (watched.jobs.submitted, watched.jobs.detected) == ([], 1)
    # The language is known now, whatever the rules are.
    await run(watched, only_languages=("de",))
    assert (watched.jobs.submitted, watched.jobs.detected) == ([], 1)
    await run(watched, only_languages=("de", "en"))
    assert (watched.jobs.submitted, watched.jobs.detected) == (["film.mkv"], 1)
    assert watched.subtitles() == {"film.en.srt": "transcript of film.mkv"}


async def test_the_transcript_has_another_language(watched: Watched) -> None:
    watched.add("film.mkv")
    detect = watched.jobs.detect_language

    async def mistaken(*arguments: Any) -> str:
        await detect(*arguments)
        return "de"

    watched.jobs.detect_language = mistaken  # type: ignore[method-assign]
    assert await run(watched, only_languages=("de",)) == [
        "skipped film.mkv (its language is English, not German)"
    ]
    assert watched.subtitles() == {}


@pytest.mark.parametrize(("name", "skipped"), CASES["subtitles"])
async def test_existing_subtitles(watched: Watched, name: str, skipped: bool) -> None:
    watched.add("film.mkv")
    there = watched.add(name, "by hand")
    lines = await run(watched, skip_existing=True)
    assert [line.split()[0] for line in lines] == ["skipped" if skipped else "done"]
    assert not skipped or name in lines[0]
    assert watched.jobs.submitted == ([] if skipped else ["film.mkv"])
    assert "by hand" in there.read_text()


async def test_subtitles_of_a_longer_name_belong_to_that(watched: Watched) -> None:
    watched.add("Show.mkv")
    watched.add("Show.S01.mkv")
    watched.add("Show.S01.en.srt", "by hand")
    lines = await run(watched, skip_existing=True)
    assert sorted(line.split()[:2] for line in lines) == [["done", "Show.mkv"], ["skipped", "Show.S01.mkv"]]


@pytest.mark.parametrize(
    ("language", "tags", "skipped"),
    [
        (None, ("ger", "eng"), True),
        (None, ("ger",), False),
        (None, ("und",), True),
        (None, ("",), True),
        (None, ("gle",), False),
        (None, (), False),
        ("de", ("deu",), True),
        ("zh", ("zh-Hant",), True),
    ],
)
async def test_subtitles_inside(
    watched: Watched, language: str | None, tags: tuple[str, ...], skipped: bool
) -> None:
    watched.add("film.mkv")
    watched.jobs.language = language or "en"

    async with watched.watch(skip_existing=True, options={"language": language}) as watching:

        async def read(_: Any) -> Streams:
            return Streams(60.0, tags)

        watching._headers.read = read  # type: ignore[method-assign]
        await idle(watching)
    assert watched.jobs.submitted == ([] if skipped else ["film.mkv"])
    assert ("inside the file" in str(watched.report.lines)) is skipped
    assert watched.jobs.detected == (
        language is None and bool(tags) and tags != ("gle",) and tags not in [("und",), ("",)]
    )


async def test_without_the_rule_only_the_same_name_counts(watched: Watched) -> None:
    for name in ("a", "b", "c"):
        watched.add(f"{name}.mkv")
    watched.add("a.en.srt", "by hand")
    watched.add("b.srt", "by hand")
    watched.add("c.de.srt", "by hand")
    lines = await run(watched)
    assert sorted(line.split()[:2] for line in lines) == [
        ["done", "b.mkv"],
        ["done", "c.mkv"],
        ["skipped", "a.mkv"],
    ]
    assert watched.subtitles()["a.en.srt"] == "by hand"
    assert watched.jobs.detected == 2, "the language decides where another one is there"


async def test_a_subtitle_that_comes_meanwhile_is_not_replaced(watched: Watched) -> None:
    watched.add("film.mkv")
    watched.jobs.before_job = lambda: watched.add("film.en.srt", "by hand")
    [line] = await run(watched)
    assert line.startswith("skipped film.mkv (film.en.srt is there")
    assert watched.subtitles() == {"film.en.srt": "by hand"}


async def test_own_subtitles_are_replaced_and_corrected_ones_are_not(watched: Watched) -> None:
    film, other = watched.add("film.mkv"), watched.add("other.mkv")
    await run(watched)
    watched.add("other.en.srt", "corrected by hand")
    film.write_text("new film")
    other.write_text("new other")
    lines = await run(watched)
    assert watched.subtitles() == {
        "film.en.srt": "transcript of new film",
        "other.en.srt": "corrected by hand",
    }
    assert sorted(line.split()[0] for line in lines[2:]) == ["done", "skipped"]


async def test_short_recordings(watched: Watched) -> None:
    """Those whose headers do not say so are known by their jobs."""
    watched.add("film.mkv")
    watched.jobs.duration = 7.5
    assert await run(watched, min_duration_s=10) == ["skipped film.mkv (it has 7.5 s, less than 10 s)"]
    assert watched.subtitles() == {}
    watched.report.lines.clear()
    assert await run(watched, min_duration_s=10) == []
    [line] = await run(watched, min_duration_s=5)
    assert line.startswith("done")


async def test_other_formats_and_translations_are_made_once_each(watched: Watched) -> None:
    watched.add("film.mkv")
    watched.jobs.language = "de"
    for _ in range(2):
        await run(watched)
        await run(watched, file_format="vtt")
        await run(watched, options={"task": "translate"})
    names = {path.name for path in watched.folder.iterdir()}
    assert names == {"film.mkv", "film.de.srt", "film.de.vtt", "film.en.srt"}
    assert len(watched.jobs.submitted) == 3


@pytest.mark.parametrize(
    ("spoken", "name"), [("jw", "film.jv.srt"), ("yue", "film.zh.srt"), ("haw", "film.haw.srt")]
)
async def test_codes_that_players_read(watched: Watched, spoken: str, name: str) -> None:
    watched.add("film.mkv")
    watched.jobs.language = spoken
    await run(watched)
    assert list(watched.subtitles()) == [name]
