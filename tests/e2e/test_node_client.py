"""OpenAI's client for Node, from npm."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.documentation import section
from tests.e2e.fixtures import write_wav
from tests.e2e.live_clients import stream_audio
from tests.e2e.running import KEY, free_port
from tests.media_files import RATE, read_pcm
from tests.nginx import MISSING, REQUIRED, find_nginx, running_nginx

PACKAGES = (
    "openai@7.57.0",
    "openapi-fetch@0.17.0",
    "openapi-typescript@7.13.0",
    "typescript@5.9.3",
    "ws@8.23.0",
)
TYPES = Path(__file__).parents[2] / "node_modules" / "@types"
SCRIPTS = [Path(__file__).with_name(name) for name in ("openai.mjs", "realtime.mjs")]

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on this machine"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the client and the program that uses it."""
    made = tmp_path_factory.mktemp("node")
    (made / "package.json").write_text('{"private": true}')
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *PACKAGES]
    subprocess.run(command, cwd=made, check=True, capture_output=True, timeout=120)
    for script in SCRIPTS:
        shutil.copy(script, made)
    return made


def test_it_uploads_and_streams(folder, server, talk_pcm):
    recording = write_wav(folder, talk_pcm[: 40 * RATE])
    done = subprocess.run(
        ["node", "openai.mjs", f"{server.url}/v1", str(recording)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    text = server.text(recording).strip()
    assert found["complete"]["text"] == text
    assert found["complete"]["words"]
    *deltas, last = found["events"]
    assert {event["type"] for event in deltas} == {"transcript.text.delta"}
    assert len(deltas) > 1
    assert last["type"] == "transcript.text.done"
    assert "".join(event["delta"] for event in deltas) == last["text"] == text
    assert found["refused"] == {"name": "NotFoundError", "status": 404, "code": "model_not_found"}


@pytest.mark.skipif(find_nginx() is None and not REQUIRED, reason=MISSING)
def test_it_speaks_live_behind_a_proxy_with_tls(folder, module_commands, shorts):
    settings = {"WHISPER_GPUS": "0", "WHISPER_ROOT_PATH": "/whisper", "WHISPER_API_KEYS": KEY}
    service = module_commands.ready(key=KEY, **settings)
    pcm = read_pcm(shorts[0])
    (folder / "audio.pcm").write_bytes(stream_audio(pcm))
    port = free_port()
    proxy = folder / "nginx"
    with running_nginx(proxy, port, service.port):
        done = subprocess.run(
            ["node", "realtime.mjs", f"https://127.0.0.1:{port}/whisper/v1", KEY, "audio.pcm"],
            cwd=folder,
            # openssl has made the certificate for a name that is an address.
            env=os.environ | {"NODE_TLS_REJECT_UNAUTHORIZED": "0"},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["transcript"] == service.text(shorts[0]).strip()
    assert found["deltas"] == found["transcript"]
    assert found["types"][:2] == ["session.created", "session.updated"]
    assert "unexpected server response: 401" in found["refused"].lower()
    assert KEY not in service.stderr


def test_the_program_of_the_guide(folder, server, shorts):
    [block] = section("docs/clients.md", "Node", ("js",))
    (folder / "guide.mjs").write_text(block.text.replace("http://localhost:8000", server.url))
    shutil.copy(shorts[0], folder / "talk.mp3")
    done = subprocess.run(["node", "guide.mjs"], cwd=folder, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, server.srt(shorts[0], profile="netflix") + "\n"), done.stderr


def test_typescript_has_the_types_of_the_service(folder, server, shorts):
    [block] = section("docs/clients.md", "Generated clients", ("ts",))
    made = folder / "typescript"
    made.mkdir()
    (made / "package.json").write_text('{"type": "module"}')
    (made / "guide.ts").write_text(block.text.replace("http://localhost:8000", server.url))
    shutil.copy(Path(__file__).with_name("generated.ts"), made)
    shutil.copy(shorts[0], made / "talk.mp3")
    (made / "openapi.json").write_bytes(server.client.get("/openapi.json").content)

    def ran(*command):
        done = subprocess.run(command, cwd=made, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    binaries = folder / "node_modules" / ".bin"
    ran(
        binaries / "openapi-typescript",
        "openapi.json",
        "--default-non-nullable=false",
        "-o",
        "whisperfleet.d.ts",
    )
    options = "--strict --module nodenext --target es2023 --skipLibCheck --types node"
    ran(binaries / "tsc", *options.split(), "--typeRoots", TYPES, "guide.ts", "generated.ts")
    assert ran("node", "guide.js") == server.srt(shorts[0]) + "\n"
    found = json.loads(ran("node", "generated.js", server.url, shorts[0]))
    assert found == {"name": "short.flac", "tags": ["a"], "code": "urls_not_allowed"}
