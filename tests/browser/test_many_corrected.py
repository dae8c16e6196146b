"""Hundreds of recordings from the shell, some corrected on the page, and fetched again."""

from pathlib import Path

import pytest

from tests.browser.conftest import NewPage
from tests.browser.transcript_pages import open_job, save
from tests.e2e.fixtures import Commands
from tests.e2e.running import DATA, SIMULATED

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


def test_what_is_corrected_on_the_page_is_fetched(
    module_commands: Commands, new_page: NewPage, tmp_path: Path
) -> None:
    server = module_commands.ready(**SIMULATED, WHISPER_SIMULATED="speed=1000")
    recordings, texts = tmp_path / "interviews", tmp_path / "texts"
    recordings.mkdir()
    for number in range(300):
        (recordings / f"Interview {number}.flac").write_bytes((DATA / "short00.flac").read_bytes())

    def run(*arguments: object) -> list[str]:
        done = module_commands.run(*arguments, "--server", server.url)
        assert done.process.returncode == 0, done.stderr
        return done.stderr.splitlines()

    def fetched() -> set[str]:
        lines = run("fetch", "--tag", "study", "--format", "md", "-o", texts)
        return {line.rpartition("/")[2] for line in lines if line.startswith("→")}

    run("transcribe", recordings, "-o", f"{tmp_path / 'drafts'}/", "--keep", "--tag", "study")
    assert len(fetched()) == 300

    page = new_page(server)
    jobs = server.client.get("/v1/jobs", params={"limit": 100}).raise_for_status().json()["data"][::5]
    for job in jobs:
        open_job(page, job["id"]).first.dblclick()
        page.locator("textarea.segment-text").fill(f"Corrected: {job['filename']}.")
        save(page)
    names = {f"{Path(job['filename']).stem}.md" for job in jobs}
    assert len(names) == 20
    assert fetched() == names
    assert all(f"Corrected: {Path(name).stem}" in (texts / name).read_text() for name in names)
    assert fetched() == set()
