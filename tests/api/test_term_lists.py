"""Names and terms over HTTP: whose they are, and what they replace."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.settings import Settings
from tests.api.conftest import Site, serve_site
from tests.api.test_job_corrections import save
from tests.api.test_job_events import events as followed
from tests.api.test_owners import ALICE, BOB, OPERATOR, bearer, shared, submitted
from tests.api.test_segments import clip, transcribe
from tests.api.test_streaming import events
from tests.api.waiting import wait_for

FOX = {"write": "Firefox", "for": ["brown fox"]}
TEXT = "The quick Firefox. Über the lazy dog."
PLAIN = "The quick brown fox. Über the lazy dog."
REPLACED = [{"at": 10, "write": "Firefox", "heard": "brown fox"}]


def put(site: Site, *terms: Any, key: str = "") -> httpx.Response:
    return site.client.put("/v1/terms", json={"data": terms}, headers=bearer(key) if key else None)


def listed(site: Site, key: str = "") -> Any:
    answer = site.client.get("/v1/terms", headers=bearer(key) if key else None)
    return answer.raise_for_status().json()["data"]


@pytest.fixture
def fox(site: Site) -> Any:
    put(site, FOX).raise_for_status()
    yield site
    put(site).raise_for_status()


def segments(site: Site, job: str, headers: Any = None, **params: Any) -> Any:
    answer = site.client.get(f"/v1/jobs/{job}/segments", headers=headers, params=params)
    return answer.raise_for_status().json()["segments"]


def test_a_list_is_replaced_whole(fox: Site) -> None:
    assert listed(fox) == [FOX | {"language": None}]
    german = {"write": "Käse", "for": ["Kähse", " kehse "], "language": "German"}
    answer = put(fox, german)
    assert answer.json()["data"] == [{"write": "Käse", "for": ["Kähse", "kehse"], "language": "de"}]
    assert listed(fox) == answer.json()["data"]


@pytest.mark.parametrize(
    ("terms", "fault"),
    [
        ([{"write": "a"}], "data.0.for: Field required"),
        ([{"write": "a b", "for": ["x"]}, {"write": "c", "for": ["B"]}], "'a b' contains 'b'"),
        ([{"write": "a", "for": ["x"]}] * 1001, "1000"),
    ],
)
def test_a_list_that_cannot_be_used_changes_nothing(fox: Site, terms: list[Any], fault: str) -> None:
    answer = put(fox, *terms)
    assert answer.status_code == 400
    assert fault in answer.json()["error"]["message"]
    assert listed(fox) == [FOX | {"language": None}]


def test_each_owner_has_its_own_list_and_links_have_none(serve: Any) -> None:
    site = serve(api_keys=(f"alice:{ALICE}", f"bob:{BOB}", f"ops:{OPERATOR}:operator"))
    put(site, FOX, key=ALICE).raise_for_status()
    assert (len(listed(site, ALICE)), listed(site, BOB), listed(site, OPERATOR)) == (1, [], [])
    job, other = submitted(site, ALICE), submitted(site, BOB)
    assert segments(site, job, bearer(ALICE))[0]["terms"] == REPLACED
    assert "terms" not in segments(site, other, bearer(BOB))[0]
    reader = bearer(shared(site, job, ALICE, correct=True)["token"])
    for method in ("GET", "PUT"):
        assert site.client.request(method, "/v1/terms", json={"data": []}, headers=reader).status_code == 403
    seen = segments(site, job, reader)
    assert (seen[0]["text"], "terms" in seen[0]) == ("The quick Firefox.", False)
    result = site.client.get(f"/v1/jobs/{job}/result?format=verbose_json", headers=reader).text
    assert ("Firefox" in result, "brown fox" in result) == (True, False)
    body = {"segments": [{**segment, "text": f"{segment['text']}!"} for segment in seen]}
    saved = site.client.put(f"/v1/jobs/{job}/segments", json=body, headers=reader | {"If-Match": "*"})
    assert (saved.status_code, "brown fox" in saved.text) == (200, False)
    assert segments(site, job, bearer(ALICE))[0]["terms"] == REPLACED


def test_requests_use_the_list_unless_they_say_otherwise(fox: Site) -> None:
    assert fox.transcribe().json()["text"] == TEXT
    assert fox.transcribe(terms="false").json()["text"] == PLAIN
    assert fox.transcribe("translations").json()["text"] == TEXT
    own = json.dumps([{"write": "cat", "for": ["dog"]}])
    assert fox.transcribe(terms=own).json()["text"] == PLAIN.replace("dog", "cat")
    answer = fox.transcribe(terms='[{"write": "cat"}]')
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "terms")
    files = {"audio_file": ("a.wav", b"RIFF\0")}
    assert "Firefox" in fox.client.post("/asr", files=files).text
    assert "brown fox" in fox.client.post("/asr?terms=false", files=files).text
    first, second = fox.transcribe(response_format="verbose_json").json()["segments"]
    assert (first["terms"], "terms" in second) == (REPLACED, False)


def test_the_deltas_of_a_stream_have_the_terms(fox: Site) -> None:
    *deltas, done = events(fox.transcribe(stream="true", **{"include[]": "logprobs"}).text)
    assert "".join(delta["delta"] for delta in deltas) == done["text"] == TEXT
    assert "".join(part["token"] for part in done["logprobs"]).strip() == TEXT


def test_terms_are_hot_words_only_where_asked(fox: Site) -> None:
    fox.transcribe(hotwords="Zürich")
    fox.transcribe(hotwords="Zürich", terms_as_hotwords="true")
    job = fox.submitted(terms_as_hotwords="true")
    assert fox.finished(job)["options"]["hotwords"] == "Firefox"
    hotwords = [call.options.hotwords for call in fox.service.calls]
    assert hotwords == ["Zürich", "Zürich, Firefox", "Firefox"]


def test_a_job_keeps_the_terms_of_its_submission(fox: Site) -> None:
    fox.service.paused = True
    job, without = fox.submitted(), fox.submitted(terms="false")
    put(fox, {"write": "cat", "for": ["dog"]}).raise_for_status()
    fox.service.paused = False
    assert fox.finished(job)["excerpt"] == TEXT
    assert fox.finished(without)["excerpt"] == PLAIN
    assert fox.client.get(f"/v1/jobs/{job}/result?format=srt").text.count("Firefox") == 1
    first = fox.client.get(f"/v1/jobs/{job}/result?format=verbose_json").json()["segments"][0]
    assert first["terms"] == REPLACED
    again = fox.client.post(f"/v1/jobs/{job}/again", json={"beam_size": 1}).json()
    fox.finished(again["id"])
    assert fox.job(job)["excerpt"] == TEXT, "its own terms, not the list of today"
    again = fox.client.post(f"/v1/jobs/{job}/again", json={"terms": False}).json()
    fox.finished(again["id"])
    assert fox.job(job)["excerpt"] == PLAIN


def test_the_transcript_so_far_and_its_events_have_the_terms(fox: Site) -> None:
    transcribe(fox.service, clip(0, "The brown fox", "sleeps."), clip(1, "Then"))
    fox.service.paused = True
    job = fox.submitted()
    wait_for(lambda: len(segments(fox, job)) == 2)
    so_far = segments(fox, job)
    assert (so_far[0]["text"], so_far[0]["terms"]) == ("The Firefox", [REPLACED[0] | {"at": 4}])
    fox.service.paused = False
    fox.finished(job)
    told = [event.job for event in followed(fox, job) if event.type == "job.segments"]
    assert [one for event in told for one in event["segments"]][:2] == so_far


def test_the_list_of_the_service_counts_beside_that_of_an_owner(tmp_path: Path) -> None:
    file = tmp_path / "terms.json"
    common = [{"write": "Cat", "for": ["dog"]}, {"write": "brown cat", "for": ["brown fox"]}]
    file.write_text(json.dumps({"data": common}))
    folder = tmp_path / "data"
    for _ in range(2):  # the list of the owner outlives the service
        with serve_site(Settings(data_dir=folder, terms=file, _env_file=None)) as site:
            assert listed(site) in ([], [FOX | {"language": None}])
            if not listed(site):
                assert site.transcribe().json()["text"] == PLAIN.replace("fox", "cat").replace("dog", "Cat")
                put(site, FOX).raise_for_status()
            assert site.transcribe().json()["text"] == TEXT.replace("dog", "Cat")


def test_what_was_replaced_is_undone_by_a_correction(fox: Site) -> None:
    job = fox.submitted()
    fox.finished(job)
    before = segments(fox, job, revision="original")
    assert (before[0]["text"], len(before[0]["words"])) == ("The quick Firefox.", 3)
    save(fox, job, "The quick brown fox.", "Über the lazy dog.")
    (first, _) = segments(fox, job)
    assert "terms" not in first
    plain = fox.submitted(terms="false")
    fox.finished(plain)
    assert first["words"] == segments(fox, plain)[0]["words"], "with the times and doubts of before"
