"""`GET /v1/jobs/{id}/peaks`, with a fake service."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.common.errors import DiskFull, InvalidInput, TooLarge
from app.database.connection import FILE_NAME
from tests.api.fake_service import TONE
from tests.api.waiting import wait_for


def peaks(site, job, headers=None, **query):
    return site.client.get(f"/v1/jobs/{job}/peaks", params=query, headers=headers)


def error(response):
    detail = response.json()["error"]
    return response.status_code, detail["param"], detail["code"]


def rows(site) -> int:
    """How many jobs have stored peaks."""
    with sqlite3.connect(site.service.settings.data_dir / FILE_NAME) as database:
        [(count,)] = database.execute("SELECT count(*) FROM peaks")
    database.close()
    return count


@pytest.fixture
def job(site):
    """A job that is done, and has no peaks."""
    return site.finished(site.submitted())["id"]


def test_the_waveform_of_a_recording(site, job):
    answer = peaks(site, job, points=6)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {
        "duration": 4.2,
        "points": 6,
        "min": [-0.9922, -0.9922, -0.5, -0.5, 0.0, 0.0],
        "max": [0.5, 0.5, 0.25, 0.25, 0.0, 0.0],
        "rms": [0.9922, 0.9922, 0.5, 0.5, 0.0, 0.0],
    }
    assert "-0.0," not in answer.text


@pytest.mark.parametrize("points", [None, 1, 7, 210, 211, 1000, 100_000])
def test_as_many_points_as_asked_for(site, job, points):
    found = peaks(site, job, **({} if points is None else {"points": points})).json()
    points = points or 1000
    assert {len(found[name]) for name in ("min", "max", "rms")} == {found["points"]} == {points}
    assert min(found["min"]) == -0.9922
    assert max(found["max"]) == 0.5
    assert all(-1 <= low <= high <= 1 for low, high in zip(found["min"], found["max"], strict=True))
    assert all(value == round(value, 4) for value in found["min"] + found["max"])
    # Each point is at most a bin away from the samples of its share, and rounded to a byte.
    share = len(TONE) / points
    for point in range(0, points, max(1, points // 50)):
        near = TONE[max(0, int(point * share) - 320) : int((point + 1) * share) + 320] / 32_768
        assert near.min() - 0.005 <= found["min"][point]
        assert found["max"][point] <= near.max() + 0.005


@pytest.mark.parametrize("points", ["0", "-1", "100001", "1.5", "many", "", "nan", "9" * 40])
def test_a_wrong_number_of_points(site, job, points):
    answer = peaks(site, job, points=points)
    assert error(answer)[:2] == (400, "points")
    assert not site.service.media.peaks_made


@pytest.mark.parametrize("job_id", ["0" * 32, "nobody", "%00"])
def test_an_unknown_job(site, job_id):
    assert error(peaks(site, job_id)) == (404, None, "job_not_found")


def test_they_are_there_while_the_job_still_runs(site):
    site.service.finds_peaks = True
    site.service.paused = True
    job = site.submitted()
    wait_for(lambda: site.job(job)["progress"]["stage"] == "transcribing")
    running = peaks(site, job)
    assert running.status_code == 200
    site.service.paused = False
    site.finished(job)
    assert peaks(site, job).content == running.content
    assert not site.service.media.peaks_made


def test_a_recording_that_is_not_decoded_yet(site):
    site.service.paused = True
    job = site.submitted()  # this pipeline decodes nothing
    assert error(peaks(site, job)) == (409, None, "audio_not_decoded")
    site.service.paused = False
    site.finished(job)
    assert peaks(site, job).status_code == 200


def test_a_recording_that_is_not_kept_has_the_peaks_that_were_found(serve):
    site = serve(keep_audio=False)
    site.service.finds_peaks = True
    found = site.finished(site.submitted())["id"]
    site.service.finds_peaks = False
    without = site.finished(site.submitted())["id"]
    wait_for(lambda: not site.left_files)
    assert peaks(site, found).status_code == 200
    assert error(peaks(site, without)) == (409, None, "audio_not_kept")
    assert not site.service.media.peaks_made


def test_a_recording_that_is_not_downloaded_yet(downloading):
    site, job = downloading
    assert error(peaks(site, job)) == (409, None, "audio_not_decoded")


def test_they_are_made_once_and_kept(site, job):
    first = peaks(site, job)
    assert peaks(site, job).content == first.content
    assert peaks(site, job, points=5).json()["points"] == 5
    assert site.service.media.peaks_made == 1
    assert rows(site) == 1
    site.client.delete(f"/v1/jobs/{job}").raise_for_status()
    assert rows(site) == 0
    assert peaks(site, job).status_code == 404


@pytest.mark.parametrize(
    ("failure", "status"),
    [(DiskFull("Full."), 507), (TooLarge("Long."), 413), (InvalidInput("Broken."), 400)],
)
def test_errors_of_decoding(site, job, failure, status):
    site.service.error = failure
    assert peaks(site, job).status_code == status
    site.service.error = None
    assert peaks(site, job).status_code == 200


def test_caches_ask_whether_it_has_changed(site, job):
    first = peaks(site, job)
    etag = first.headers["etag"]
    assert first.headers["cache-control"] == "private, no-cache"
    for header in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        answer = peaks(site, job, {"if-none-match": header})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", etag)
        assert answer.headers["cache-control"] == "private, no-cache"
    for header in ('"other"', "", etag.strip('"')):
        assert peaks(site, job, {"if-none-match": header}).content == first.content
    other = peaks(site, job, {"if-none-match": etag}, points=10)
    assert (other.status_code, other.json()["points"]) == (200, 10)
    assert other.headers["etag"] != etag


def test_deleting_the_job_ends_the_making(site, job):
    site.service.paused = True
    with ThreadPoolExecutor(1) as background:
        asked = background.submit(peaks, site, job)
        wait_for(lambda: site.service.media.peaks_made)
        assert site.client.delete(f"/v1/jobs/{job}").status_code == 204
        assert error(asked.result()) == (409, None, "audio_not_kept")
    assert rows(site) == 0
    assert not site.left_files


def test_only_the_making_holds_a_place(serve):
    site = serve(max_queued_jobs=1)
    site.service.finds_peaks = True
    found = site.finished(site.submitted())["id"]
    site.service.finds_peaks = False
    job = site.finished(site.submitted())["id"]
    site.service.paused = True
    with ThreadPoolExecutor(5) as background:
        asked = [background.submit(peaks, site, job) for _ in range(5)]
        wait_for(lambda: site.admission.requests.held == 5)
        assert error(peaks(site, job)) == (429, None, "queue_full")
        assert peaks(site, found).status_code == 200
        site.service.paused = False
        assert [one.result().status_code for one in asked] == [200] * 5
    assert peaks(site, job).status_code == 200
