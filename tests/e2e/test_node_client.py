"""OpenAI's client for Node, from npm."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.documentation import section

OPENAI = "openai@6.49.0"
SCRIPT = Path(__file__).with_name("openai.mjs")

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on this machine"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the client and the program that uses it."""
    made = tmp_path_factory.mktemp("node")
    (made / "package.json").write_text('{"private": true}')
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", OPENAI]
    subprocess.run(command, cwd=made, check=True, capture_output=True, timeout=120)
    shutil.copy(SCRIPT, made)
    return made


def test_it_uploads_and_streams(folder, server, talk):
    done = subprocess.run(
        ["node", "openai.mjs", f"{server.url}/v1", str(talk.path)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    text = server.text(talk.path).strip()
    assert found["complete"]["text"] == text
    assert found["complete"]["words"]
    *deltas, last = found["events"]
    assert {event["type"] for event in deltas} == {"transcript.text.delta"}
    assert len(deltas) > 1
    assert last["type"] == "transcript.text.done"
    assert "".join(event["delta"] for event in deltas) == last["text"] == text
    assert found["refused"] == {"name": "NotFoundError", "status": 404, "code": "model_not_found"}


def test_the_program_of_the_guide(folder, server, shorts):
    [block] = section("docs/clients.md", "Node", ("js",))
    (folder / "guide.mjs").write_text(block.text.replace("http://localhost:8000", server.url))
    shutil.copy(shorts[0], folder / "talk.mp3")
    done = subprocess.run(["node", "guide.mjs"], cwd=folder, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, server.srt(shorts[0], profile="netflix") + "\n"), done.stderr
