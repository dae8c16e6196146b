"""The commands in README work as they are written there."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.reading import read_srt
from tests.media_files import encode

pytestmark = pytest.mark.timeout(120)

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def curl_lines() -> list[str]:
    """Each curl command of README, its continuation lines joined."""
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("curl ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, talk_pcm):
    """A folder with the recordings that README names."""
    made = tmp_path_factory.mktemp("readme")
    excerpt = talk_pcm[: 20 * 16_000]
    (made / "talk.mp3").write_bytes(encode(excerpt, "mp3", "libmp3lame"))
    (made / "rede.mp3").write_bytes((made / "talk.mp3").read_bytes())
    (made / "film.mkv").write_bytes(encode(excerpt, "matroska", "aac", video="mpeg4"))
    (made / "tests").symlink_to(ROOT / "tests")
    return made


def test_readme_has_curl_lines() -> None:
    assert len(curl_lines()) >= 6


@pytest.mark.parametrize("line", curl_lines())
def test_a_curl_line(line, server, folder, shorts):
    job = server.submit(shorts[0]) if "$JOB" in line else {"id": ""}
    if "result" in line:
        server.finished(job["id"])
    # The lines name port 8000. curl's own configuration redirects them to the server of this test.
    (folder / ".curlrc").write_text(f'connect-to = "localhost:8000:127.0.0.1:{server.port}"\nsilent\n')
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin", "JOB": f"/v1/jobs/{job['id']}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() or "DELETE" in line
    assert '"error":{' not in done.stdout
    if "response_format=srt" in line:
        assert read_srt(done.stdout)
