"""Many results as one ZIP."""

import io
import random
import socket
import time
import zipfile
from dataclasses import replace
from datetime import UTC, datetime

import httpx
import pytest

from app.api.jobs import archive as archives
from app.api.jobs.archive import MAX_JOBS
from app.commands.serve import MAX_HEAD_BYTES
from app.common.errors import DatabaseUnavailable
from app.jobs.storage.store import Store
from app.transcript.formats import FORMATS
from tests.api.fake_service import TRANSCRIPT, segment
from tests.api.waiting import wait_for
from tests.slow_readers import ask

HEADERS = {"content-type": "audio/wav"}
FILENAMES = [f"{number}.wav" for number in range(12)]
UNKNOWN = "0" * 32


def done(site, filename="talk.wav"):
    """The id of a job that has succeeded."""
    return all_done(site, [filename])[0]


def all_done(site, filenames):
    """The ids of jobs that have succeeded."""
    ids = []
    for name in filenames:
        response = site.client.post("/v1/jobs", params={"filename": name}, content=b"RIFF", headers=HEADERS)
        ids.append(response.json()["id"])
    return [site.finished(job_id)["id"] for job_id in ids]


def download(site, *ids, form=None):
    params = {"ids": ",".join(ids)} | ({"format": form} if form else {})
    return site.client.get("/v1/jobs/archive", params=params)


def opened(response):
    assert response.status_code == 200, response.text
    file = zipfile.ZipFile(io.BytesIO(response.content))
    assert file.testzip() is None
    return file


def contents(response):
    file = opened(response)
    return {name: file.read(name) for name in file.namelist()}


def refusal(response):
    error = response.json()["error"]
    return response.status_code, error["param"], error["code"]


@pytest.mark.parametrize("form", [*FORMATS, "verbose_json"])
def test_every_format_equals_the_single_results(site, form):
    jobs = [done(site, "one.wav"), done(site, "two.mp3")]
    response = download(site, *jobs, form=form)
    assert response.headers["content-type"] == "application/zip"
    assert response.headers["content-disposition"] == f'attachment; filename="transcripts-{form}.zip"'
    single = [site.client.get(f"/v1/jobs/{job}/result", params={"format": form}).content for job in jobs]
    extension = form.removeprefix("verbose_")
    names = [f"one.{extension}", f"two.{extension}"]
    assert contents(response) == dict(zip(names, single, strict=True))


def test_srt_is_the_default_format_and_order_is_that_of_the_request(site):
    first, second = done(site, "a.wav"), done(site, "b.wav")
    assert list(contents(download(site, second, first, second))) == ["b.srt", "a.srt"]


def test_names_are_unique_and_safe(site):
    names = ["talk.wav", "talk.mp3", "Grüße 世界.wav", "..", "con.wav"]
    jobs = all_done(site, names)
    file = opened(download(site, *jobs))
    assert file.namelist() == ["talk.srt", "talk (2).srt", "Grüße 世界.srt", f"{jobs[3]}.srt", "_con.srt"]
    assert file.infolist()[2].flag_bits & 0x800  # its name is in UTF-8


def test_files_have_the_times_of_the_results_and_can_be_read(site):
    job = done(site)
    [info] = opened(download(site, job)).infolist()
    finished = datetime.fromisoformat(site.job(job)["finished_at"])
    assert 0 <= (finished - datetime(*info.date_time, tzinfo=UTC)).total_seconds() < 2  # ZIP has even seconds
    assert info.external_attr >> 16 == 0o644
    assert info.compress_type == zipfile.ZIP_DEFLATED


def test_ids_may_be_repeated_parameters_and_have_spaces(site):
    first, second, third = done(site, "a.wav"), done(site, "b.wav"), done(site, "c.wav")
    params = [("ids", f"{first}, {second},"), ("ids", second), ("ids", third)]
    response = site.client.get("/v1/jobs/archive", params=params)
    assert list(contents(response)) == ["a.srt", "b.srt", "c.srt"]


@pytest.mark.parametrize("query", ["", "?ids=", "?ids=,", "?ids=%20&ids=", "?format=srt"])
def test_no_ids(site, query):
    assert refusal(site.client.get(f"/v1/jobs/archive{query}")) == (400, "ids", None)


@pytest.mark.parametrize("form", ["pdf", "SRT", ""])
def test_unknown_formats(site, form):
    response = site.client.get("/v1/jobs/archive", params={"ids": done(site), "format": form})
    assert refusal(response) == (400, "format", None)


@pytest.mark.parametrize("job_id", [UNKNOWN, "nonsense", "\x00", "archive", "é" * 100])
def test_unknown_jobs(site, job_id):
    response = download(site, done(site), job_id)
    assert refusal(response) == (404, "ids", "job_not_found")
    assert repr(job_id[:64]) in response.json()["error"]["message"]


def test_jobs_without_a_result(site):
    finished = done(site)
    site.service.paused = True
    waiting = site.submitted()
    response = download(site, finished, waiting)
    assert refusal(response) == (409, "ids", "job_not_done")
    assert waiting in response.json()["error"]["message"]


def test_the_paths_of_jobs_stay(site):
    assert site.client.get("/v1/jobs/archived").status_code == 404
    assert site.client.delete(f"/v1/jobs/{UNKNOWN}").status_code == 404
    refused = site.client.delete("/v1/jobs/archive")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET")


# What cannot be in the archive


def test_a_format_that_lacks_a_character(site):
    fine = done(site, "fine.wav")
    site.service.transcript = replace(TRANSCRIPT, segments=(segment("Das Wort 猫.", 0.5, 2.0),))
    odd = done(site, "odd.wav")
    found = contents(download(site, odd, fine, form="scc"))
    assert list(found) == ["fine.scc", "errors.txt"]
    errors = found["errors.txt"].decode()
    assert errors.startswith(f"{odd}: ")
    assert "no character '猫'" in errors


def test_a_job_that_is_deleted_meanwhile(site, monkeypatch):
    kept, deleted = done(site, "kept.wav"), done(site, "deleted.wav")
    statuses = Store.statuses

    async def answer_and_delete(store, ids, owner):
        found = await statuses(store, ids, owner)
        job = await store.get(deleted)
        await store.delete(job)
        (site.service.media.folder.uploads / job.submission.file).unlink()
        return found

    monkeypatch.setattr(Store, "statuses", answer_and_delete)
    found = contents(download(site, deleted, kept))
    assert list(found) == ["kept.srt", "errors.txt"]
    assert f"{deleted}: There is no job" in found["errors.txt"].decode()


def let_fail(monkeypatch, failing, error):
    """The result of the job with the id `failing` cannot be made."""
    result_response = archives.result_response

    async def fail_once(service, jobs, job, form):
        if job.id == failing:
            raise error
        return await result_response(service, jobs, job, form)

    monkeypatch.setattr(archives, "result_response", fail_once)


def test_an_error_that_nobody_expected(site, monkeypatch):
    good, bad = done(site, "good.wav"), done(site, "bad.wav")
    let_fail(monkeypatch, bad, ValueError("secret"))
    found = contents(download(site, bad, good))
    assert list(found) == ["good.srt", "errors.txt"]
    assert found["errors.txt"].decode() == f"{bad}: {archives._UNEXPECTED}\n"


def test_a_recording_named_errors(site):
    assert list(contents(download(site, done(site, "errors.wav"), form="txt"))) == ["errors (2).txt"]


# Many


@pytest.mark.parametrize("repeated", [False, True])
def test_the_url_may_have_a_thousand_ids(site, repeated):
    ids = [f"{number:032x}" for number in range(MAX_JOBS)]
    params = [("ids", job_id) for job_id in ids] if repeated else {"ids": ",".join(ids)}
    response = site.client.get("/v1/jobs/archive", params=params)
    assert len(str(response.url)) > 33_000
    assert refusal(response) == (404, "ids", "job_not_found")
    too_many = site.client.get("/v1/jobs/archive", params={"ids": ",".join([*ids, "f" * 32])})
    assert refusal(too_many) == (400, "ids", None)
    assert str(MAX_JOBS) in too_many.json()["error"]["message"]


def test_a_long_url_may_arrive_in_parts(site):
    """The limit of the parser is for what has come of an incomplete request."""
    ids = ",".join(f"{number:032x}" for number in range(MAX_JOBS))
    head = f"GET /v1/jobs/archive?ids={ids} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", site.port), timeout=5) as connection:
        connection.sendall(head[:30_000])
        time.sleep(0.3)
        connection.sendall(head[30_000:])
        assert connection.recv(1000).startswith(b"HTTP/1.1 404 ")


def test_the_url_has_a_limit(site):
    with socket.create_connection(("127.0.0.1", site.port), timeout=5) as connection:
        connection.sendall(b"GET /v1/jobs/archive?ids=" + b"0" * (MAX_HEAD_BYTES + 1000))
        assert connection.recv(1000).startswith(b"HTTP/1.1 400 ")


def slow_client(site, ids):
    """A connection that has asked for an archive of `ids`, and reads nothing."""
    return ask(site.port, f"/v1/jobs/archive?format=verbose_json&ids={','.join(ids)}")


@pytest.fixture
def rendered(monkeypatch):
    """The ids of the jobs whose results were made. Each has 4 MiB, and cannot be compressed."""
    ids = []

    async def large_result(service, jobs, job, form):
        ids.append(job.id)
        return archives.Response(random.Random(len(ids)).randbytes(4 << 20))

    monkeypatch.setattr(archives, "result_response", large_result)
    return ids


def test_results_are_made_as_the_client_reads_them(site, rendered):
    ids = all_done(site, FILENAMES)
    with slow_client(site, ids) as connection:
        wait_for(lambda: rendered)
        wait_for_stillness(rendered)
        assert len(rendered) < 6
        received = bytearray()
        while b"\r\n0\r\n\r\n" not in received[-10:]:
            received += connection.recv(1 << 20)
    assert rendered == ids


def test_a_client_that_goes_away_ends_its_archive(site, rendered):
    ids = all_done(site, FILENAMES)
    with slow_client(site, ids):
        wait_for(lambda: rendered)
        wait_for_stillness(rendered)
    wait_for(lambda: not site.server.server_state.tasks)
    assert len(rendered) < 6


def wait_for_stillness(rendered):
    """Wait until nothing has been rendered for a while."""
    count = -1
    while count != len(rendered):
        count = len(rendered)
        time.sleep(0.3)


def test_an_archive_holds_a_place(serve, rendered):
    site = serve(max_queued_jobs=1, max_uploads=5)
    ids = all_done(site, FILENAMES)
    connections = [slow_client(site, ids) for _ in range(5)]
    assert {connection.recv(12) for connection in connections} == {b"HTTP/1.1 200"}
    refused = download(site, ids[0])
    assert refusal(refused) == (429, None, "too_many_downloads")
    assert "retry-after" in refused.headers
    assert site.transcribe().status_code == 200, "they are no transcriptions"
    connections.pop().close()
    wait_for(lambda: download(site, ids[0]).status_code == 200)
    for connection in connections:
        connection.close()


def test_an_error_that_may_pass_breaks_the_archive_off(site, monkeypatch):
    """With a ZIP that seems complete, a script would take a part of the results for all of them."""
    good, bad = done(site, "good.wav"), done(site, "bad.wav")
    let_fail(monkeypatch, bad, DatabaseUnavailable("The database does not answer."))
    with pytest.raises(httpx.RemoteProtocolError):
        download(site, good, bad)
