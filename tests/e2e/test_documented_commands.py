"""The commands in README and docs/ work as they are written there, from each page's beginning to its end."""

import itertools
import subprocess
import sys
import venv
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.e2e.documentation import SHELL, Block, Reader, all_blocks
from tests.e2e.fixtures import Commands, SharedServers
from tests.e2e.reading import read_srt
from tests.e2e.running import DATA, KEY, KEYED, ONE_SIMULATED, Server
from tests.media_files import encode

pytestmark = pytest.mark.timeout(180)

BLOCKS = all_blocks()
SECTIONS = {
    f"{page}, {heading}": list(section)
    for (page, heading), section in itertools.groupby(
        (block for block in BLOCKS if block.reason is None), lambda block: (block.page, block.heading)
    )
}
RUN_ELSEWHERE = {"docs/clients.md, Python"}  # by `test_client_examples`, which checks more
# Each command starts workers of its own, as those of README do, or needs the files of one that does.
SLOW = {
    "docs/cli.md, Transcribe files",
    "docs/cli.md, Folders and patterns",
    "docs/cli.md, On a server",
    "docs/trouble.md, Troubleshooting",
}


@pytest.fixture(scope="module")
def open_server(module_commands: Commands) -> Server:
    """A service without keys. Its model also answers by the name that examples use for translations."""
    return module_commands.ready(**ONE_SIMULATED, WHISPER_MODEL_ALIASES="gpt-4o-transcribe-diarize,large-v3")


@pytest.fixture(scope="module")
def files(tmp_path_factory, talk_pcm, open_server) -> list[Path]:
    """The files that the pages name."""
    made = tmp_path_factory.mktemp("recordings")
    excerpt = talk_pcm[: 20 * 16_000]
    (made / "talk.mp3").write_bytes(encode(excerpt, "mp3", "libmp3lame"))
    (made / "rede.mp3").write_bytes((made / "talk.mp3").read_bytes())
    (made / "ann.wav").write_bytes(encode(talk_pcm[: 4 * 16_000], "wav", "pcm_s16le"))
    (made / "film.mkv").write_bytes(encode(excerpt, "matroska", "aac", video="mpeg4"))
    (made / "call.wav").write_bytes(encode(excerpt, "wav", "pcm_s16le", layout="stereo"))
    answer = open_server.post(DATA / "short00.flac", response_format="verbose_json").raise_for_status()
    (made / "talk.json").write_bytes(answer.content)
    return list(made.iterdir())


@pytest.fixture(scope="module")
def reader_of(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[Path],
    open_server: Server,
    shared: SharedServers,
) -> Callable[[Block], Reader]:
    """The reader of a page: two of them, one with a service that has keys, and one with another."""

    @cache
    def choose(page: str, needs_key: bool) -> Reader:
        folder = tmp_path_factory.mktemp("reader")
        if not needs_key:
            return Reader(folder, files, open_server)
        return Reader(folder, files, shared(**KEYED), KEY)

    return lambda block: choose(block.page, block.needs_key)


@pytest.mark.parametrize(
    "section",
    [
        pytest.param(section, id=name, marks=[pytest.mark.soak] * (name in SLOW))
        for name, section in SECTIONS.items()
        if name not in RUN_ELSEWHERE
    ],
)
def test_the_blocks_of_a_section(section: list[Block], reader_of: Callable[[Block], Reader]) -> None:
    for reader in {reader_of(block) for block in section}:
        reader.begin_section()
    for block in section:
        printed = reader_of(block).run(block)
        if "curl" in block.text and "-X" not in block.text and "curl -o" not in block.text:
            assert printed.strip(), block.name
        if block.language in SHELL and block.text.count("curl") == 1 and "response_format=srt" in block.text:
            assert read_srt(printed), block.name


@pytest.mark.soak
def test_the_programs_run_with_what_pip_installs(
    tmp_path: Path, files: list[Path], open_server: Server, shared: SharedServers
) -> None:
    """The other tests link the packages that are installed here: a reader may get newer ones."""
    for number, block in enumerate(BLOCKS):
        if block.language != "python" or block.reason is not None:
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        reader = Reader(folder, files, shared(**KEYED) if block.needs_key else open_server, KEY)
        venv.create(reader.environment_of(block), symlinks=True)
        python = reader.environment_of(block) / "bin" / "python"
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *block.packages]
        subprocess.run(pip, check=True, timeout=120)
        reader.run(block)


def test_the_pages_have_the_commands_of_each_kind() -> None:
    """The pages are read right: commands of README and of the interface are found, and programs too."""
    run = [block for section in SECTIONS.values() for block in section]
    assert sum(block.page == "README.md" for block in run) >= 5
    assert sum(block.page == "docs/http.md" for block in run) >= 15
    assert {block.page for block in run if block.language == "python"} >= {"README.md", "docs/clients.md"}
    assert any(block.needs_key for block in run)
