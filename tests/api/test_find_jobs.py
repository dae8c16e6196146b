"""`GET /v1/jobs?q=`."""

from dataclasses import replace

import pytest

from tests.api.fake_service import TRANSCRIPT, segment
from tests.api.waiting import wait_for

HEADERS = {"content-type": "audio/wav"}


def submit(site, filename):
    response = site.client.post("/v1/jobs", params={"filename": filename}, content=b"RIFF", headers=HEADERS)
    return response.json()["id"]


def found(site, **params):
    """The ids of the jobs on a page, and whether there are more."""
    response = site.client.get("/v1/jobs", params=params)
    assert response.status_code == 200, response.text
    body = response.json()
    return [job["id"] for job in body["data"]], body["has_more"]


def test_jobs_are_found_by_name_and_text(site):
    fox = site.finished(submit(site, "animals.wav"))["id"]
    site.service.transcript = replace(TRANSCRIPT, segments=(segment("今天天气很好。", 0.5, 2.0),))
    weather = site.finished(submit(site, "Wetter Köln.wav"))["id"]
    assert found(site, q="quick FOX") == ([fox], False)
    assert found(site, q="uber anim") == ([fox], False)
    assert found(site, q="天气") == ([weather], False)
    assert found(site, q="koln wetter") == ([weather], False)
    assert found(site, q="wav") == ([weather, fox], False)
    assert found(site, q="elephant") == ([], False)
    site.client.delete(f"/v1/jobs/{fox}")
    assert found(site, q="fox") == ([], False)


def sentences(site, query):
    """The sentences of the first job that a query finds."""
    (job, *_) = site.client.get("/v1/jobs", params={"q": query}).raise_for_status().json()["data"]
    return [(match["text"], match["start"], match["segment"]) for match in job["matches"]]


def test_a_search_answers_with_the_sentences(site):
    spoken = (
        "The budget was late.",
        "Ihr Überblick\tüber das Budget!",
        "今天天气很好。",
        "Ο προϋπολογισμός",
        "ميزانية",
    )
    segments = tuple(segment(f" {text}", 2.0 * place, 2.0 * place + 1) for place, text in enumerate(spoken))
    site.service.transcript = replace(TRANSCRIPT, segments=segments)
    job = site.finished(submit(site, "meeting.wav"))["id"]
    document = site.client.get(f"/v1/jobs/{job}/segments").json()
    ids = [part["id"] for part in document["segments"]]
    first, second = (spoken[0], 0.0, ids[0]), ("Ihr Überblick über das Budget!", 2.0, ids[1])
    assert sentences(site, "BUDG") == [first, second]
    assert sentences(site, "budget uberblick") == [second]
    assert sentences(site, "天气很") == [(spoken[2], 4.0, ids[2])]
    assert sentences(site, "προυπολογισμος") == [(spoken[3], 6.0, ids[3])]
    assert sentences(site, "ميزان meeting") == [(spoken[4], 8.0, ids[4])]
    assert sentences(site, "meeting") == []
    assert site.client.get("/v1/jobs").json()["data"][0]["matches"] == []
    document["segments"][0]["text"] = "The money was late."
    put = site.client.put(f"/v1/jobs/{job}/segments", json=document, headers={"If-Match": "*"})
    assert put.status_code == 200, put.text
    assert sentences(site, "money") == [("The money was late.", 0.0, ids[0])]
    assert sentences(site, "budget") == [second]


def test_filters_and_pages_apply_to_a_search(site):
    done = [site.finished(submit(site, f"talk {number}.wav"))["id"] for number in range(3)]
    site.finished(submit(site, "other.wav"))
    site.service.paused = True
    running = submit(site, "talk.wav")
    wait_for(lambda: site.job(running)["status"] == "running")
    assert found(site, q="talk") == ([running, *done[::-1]], False)
    assert found(site, q="talk", status="succeeded", limit=2) == (done[:0:-1], True)
    assert found(site, q="talk", status="succeeded", limit=2, after=done[1]) == ([done[0]], False)
    assert found(site, q="talk", status="failed") == ([], False)


@pytest.mark.parametrize("query", ["", " ", "\t"])
def test_a_blank_query_finds_everything(site, query):
    job = submit(site, "talk.wav")
    assert found(site, q=query) == ([job], False)


@pytest.mark.parametrize("query", ["!!!", '"', "'", "*", "(", "\x00", "�", "-", "🎉"])
def test_a_query_without_words_finds_nothing(site, query):
    submit(site, "talk.wav")
    assert found(site, q=query) == ([], False)


def test_broken_utf8_is_no_error(site):
    submit(site, "talk.wav")
    response = site.client.get("/v1/jobs?q=%ff%c3talk%ed%a0%80")
    assert response.status_code == 200
    assert len(response.json()["data"]) == 1


def test_too_long_a_query(site):
    assert found(site, q="a" * 200) == ([], False)
    response = site.client.get("/v1/jobs", params={"q": "a" * 201})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "q")


def test_jobs_are_listed_by_id(site):
    first, second, third = (submit(site, f"{number}.wav") for number in range(3))
    assert found(site, ids=f"{first},{third}") == ([third, first], False)
    assert found(site, ids=[second, f"{first}, {second}"]) == ([second, first], False)
    site.client.delete(f"/v1/jobs/{first}")
    assert found(site, ids=f"{first},{second},{'0' * 32},nonsense") == ([second], False)
    assert found(site, ids=[f"{number:032x}" for number in range(100)]) == ([], False)
    assert found(site, ids=second, q="nothing", status="failed", limit=1) == ([second], False)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"ids": " ,"}, "ids"),
        ({"ids": [f"{number:032x}" for number in range(101)]}, "101 ids, more than 100"),
    ],
)
def test_ids_that_make_no_sense_are_refused(site, params, reason):
    response = site.client.get("/v1/jobs", params=params)
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["param"] == "ids"
    assert reason in error["message"]
