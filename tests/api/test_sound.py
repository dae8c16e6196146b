"""`GET /v1/jobs/{id}/audio?format=`: copies and spans, with a fake encoder."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from app.common.errors import DiskFull, InvalidInput, TooLarge
from tests.api.waiting import wait_for
from tests.cases import read_cases

REQUESTS = read_cases("requests")

WHOLE = "flac 0-inf of the recording"


def audio(site, job, headers=None, **query):
    return site.client.get(f"/v1/jobs/{job}/audio", params={"format": "flac"} | query, headers=headers)


@pytest.fixture
def job(site):
    return site.finished(site.submitted())["id"]


def error(response):
    detail = response.json()["error"]
    return response.status_code, detail["param"], detail["code"]


@pytest.mark.parametrize("form", ["flac", "ogg"])
def test_a_copy(site, job, form):
    response = audio(site, job, format=form)
    assert (response.status_code, response.text) == (200, f"{form} 0-inf of the recording")
    assert response.headers["content-type"] == f"audio/{form}"
    assert response.headers["content-disposition"] == f'inline; filename="talk.{form}"'
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["accept-ranges"] == "bytes"
    again = audio(site, job, format=form)
    assert again.headers["etag"] == response.headers["etag"]
    assert len(site.service.media.encoder.made) == 1


def test_ranges_of_a_copy(site, job):
    etag = audio(site, job).headers["etag"]
    for asked, start, end in (("bytes=0-3", 0, 4), ("bytes=5-", 5, None), ("bytes=-4", -4, None)):
        response = audio(site, job, {"range": asked, "if-range": etag})
        assert (response.status_code, response.text) == (206, WHOLE[start:end])
    assert audio(site, job, {"range": "bytes=900-"}).status_code == 416
    assert audio(site, job, {"range": "bytes=x"}).status_code == 400
    assert site.service.media.encoder.made == [WHOLE]


def test_a_span(site, job):
    assert audio(site, job, start=1.25, end=4.2).text == "flac 1.25-4.2 of the recording"
    assert audio(site, job, end=0.5, format="ogg").text == "ogg 0-0.5 of the recording"
    assert audio(site, job, start=0).text == WHOLE, "all of it is no span"
    assert audio(site, job, {"range": "bytes=-4"}, start=4.1999).text == "copy"
    made = len(site.service.media.encoder.made)
    assert audio(site, job, {"range": "bytes=0-3"}, start=1.25, end=4.2).text == "flac"
    assert len(site.service.media.encoder.made) == made, "a player asks for several ranges"


@pytest.mark.parametrize(("query", "param"), REQUESTS["audio"])
def test_bad_parameters_are_named(site, job, query, param):
    response = audio(site, job, **query)
    assert error(response)[:2] == (400, param)
    assert f"`{param}`" in response.json()["error"]["message"]
    assert not site.service.media.encoder.made


def test_a_span_needs_a_format(site, job):
    response = site.client.get(f"/v1/jobs/{job}/audio", params={"start": 1})
    assert error(response)[:2] == (400, "format")


@pytest.mark.parametrize(
    ("failure", "status"),
    [(DiskFull("Full."), 507), (TooLarge("Long."), 413), (InvalidInput("Broken."), 400)],
)
def test_errors_of_the_encoder(site, job, failure, status):
    site.service.media.encoder.error = failure
    for query in ({}, {"start": 1}):
        assert audio(site, job, **query).status_code == status
    assert not list(site.service.media.folder.copies.iterdir())


def test_a_copy_of_a_job_that_runs(site):
    site.service.paused = True
    job = site.submitted()
    assert audio(site, job).text == WHOLE
    assert audio(site, job, start=1, end=99).text == "flac 1-99 of the copy", "its length is not known yet"
    assert error(audio(site, job, end=1e300))[:2] == (400, "end")


def test_a_recording_that_is_not_kept_has_no_copies(serve):
    site = serve(keep_audio=False)
    site.service.paused = True
    job = site.submitted()
    assert audio(site, job).status_code == 200
    site.service.paused = False
    site.finished(job)
    wait_for(lambda: not site.left_files)
    for query in ({}, {"start": 1}):
        assert error(audio(site, job, **query)) == (409, None, "audio_not_kept")


def test_a_recording_that_is_not_downloaded_yet(downloading):
    site, job = downloading
    wait_for(lambda: site.job(job)["progress"]["stage"] == "downloading")
    assert error(audio(site, job)) == (409, None, "audio_not_downloaded")


def test_copies_go_with_their_job(site, job):
    for form in ("flac", "ogg"):
        assert audio(site, job, format=form).status_code == 200
    assert len(site.left_files) == 3
    assert site.client.delete(f"/v1/jobs/{job}").status_code == 204
    assert not site.left_files
    assert audio(site, job).status_code == 404


def test_deleting_a_job_ends_the_making_of_its_copy(site, job):
    encoder = site.service.media.encoder
    encoder.paused = True
    with ThreadPoolExecutor(1) as background:
        asked = background.submit(audio, site, job)
        wait_for(lambda: encoder.made)
        assert site.client.delete(f"/v1/jobs/{job}").status_code == 204
        assert error(asked.result()) == (409, None, "audio_not_kept")
    assert encoder.cancelled == 1
    assert not site.left_files


@pytest.mark.parametrize("query", ["", "&start=1"])
def test_a_span_ends_with_its_client_and_a_copy_does_not(site, job, query):
    encoder = site.service.media.encoder
    encoder.paused = True
    with site.begin(f"GET /v1/jobs/{job}/audio?format=flac{query}"):
        wait_for(lambda: encoder.made)
    wait_for(lambda: not site.server.server_state.tasks)
    assert encoder.cancelled == bool(query)
    encoder.paused = False
    wait_for(
        lambda: (
            [path.suffix for path in site.service.media.folder.copies.iterdir()]
            == ([] if query else [".flac"])
        )
    )


def test_a_copy_holds_a_place_while_it_is_made(serve):
    site = serve(max_queued_jobs=1)
    job = site.finished(site.submitted())["id"]
    site.service.media.encoder.paused = True
    with ThreadPoolExecutor(5) as background:
        asked = [background.submit(audio, site, job) for _ in range(5)]
        wait_for(lambda: site.admission.requests.held == 5)
        assert error(audio(site, job)) == (429, None, "queue_full")
        site.service.media.encoder.paused = False
        assert [one.result().status_code for one in asked] == [200] * 5
    assert audio(site, job).status_code == 200
