"""Warnings about a recording, and recordings without speech, in every answer that reports them."""

import json

import numpy as np
import pytest

from tests.e2e.running import DATA, wait_for
from tests.media_files import RATE, encode, read_pcm

pytestmark = pytest.mark.timeout(120)

GAP = {"code": "gap", "message": "Nothing was recorded from 0:02 to 0:05.", "start": 2.0, "end": 5.0}
HEADER = "x-whisperfleet-warning"


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """A recording whose recorder was off for three seconds, and one in which nobody speaks."""
    folder = tmp_path_factory.mktemp("films")
    pcm = read_pcm(DATA / "short00.flac")
    (folder / "gap.mkv").write_bytes(encode(pcm, "matroska", "pcm_s16le", clock_jumps={2: 3.0}))
    (folder / "silent.mkv").write_bytes(encode(np.zeros(4 * RATE, np.int16), "matroska", "pcm_s16le"))
    return folder


def test_requests(server, films):
    for form in ("srt", "json", "text"):
        assert server.post(films / "gap.mkv", response_format=form).headers[HEADER] == GAP["message"]
    assert HEADER not in server.post(DATA / "short00.flac").headers
    verbose = json.loads(server.text(films / "gap.mkv", response_format="verbose_json"))
    assert verbose["warnings"] == [GAP]
    streamed = server.post(films / "gap.mkv", stream="true").text
    last = json.loads(streamed.strip().splitlines()[-1].removeprefix("data: "))
    assert (last["type"], last["warnings"]) == ("transcript.text.done", [GAP])
    file = {"audio_file": (films / "gap.mkv").read_bytes()}
    assert server.client.post("/asr", files=file, params={"output": "srt"}).headers[HEADER] == GAP["message"]


def test_a_job_and_what_is_transcribed_again(server, films):
    job = server.finished(server.submit(films / "gap.mkv")["id"])
    assert job["warnings"] == [GAP]
    assert json.loads(server.result(job["id"], "verbose_json"))["warnings"] == [GAP]
    again = server.client.post(f"/v1/jobs/{job['id']}/again", json={"language": "en"}).raise_for_status()
    assert server.finished(again.json()["id"])["warnings"] == [GAP]
    assert server.job(job["id"])["warnings"] == [GAP]
    assert json.loads(server.result(job["id"], "verbose_json"))["warnings"] == [GAP]
    with_channels = server.finished(server.submit(films / "gap.mkv", channels="separate")["id"])
    assert with_channels["warnings"] == [GAP]


def test_commands(commands, server, films):
    there = commands.run("transcribe", films / "gap.mkv", "--server", server.url)
    assert f"gap.mkv: {GAP['message']}" in there.stderr
    watch = commands.start("watch", films, "--settle", 0.2, "--server", server.url)
    wait_for(lambda: "done " in watch.stdout and "skipped" in watch.stdout, 60)
    lines = watch.stdout.splitlines()
    assert f"warning {films / 'gap.mkv'} ({GAP['message']})" in lines
    assert f"skipped {films / 'silent.mkv'} (nobody speaks in it)" in lines
    assert [path.name for path in films.glob("*.srt")] == ["gap.en.srt"]


def test_where_nobody_speaks_no_language_is_claimed(server, films):
    job = server.finished(server.submit(films / "silent.mkv")["id"])
    assert (job["status"], job["language"], job["excerpt"]) == ("succeeded", None, "")
    assert json.loads(server.text(films / "silent.mkv", response_format="verbose_json"))["language"] == "und"
    asked = json.loads(server.text(films / "silent.mkv", response_format="verbose_json", language="de"))
    assert asked["language"] == "german"
    for form in ("srt", "vtt", "ttml", "stl", "docx", "ass", "scc", "md", "tsv", "lrc"):
        answer = server.client.get(f"/v1/jobs/{job['id']}/result", params={"format": form})
        assert answer.status_code == 200, answer.text
