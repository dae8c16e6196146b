"""The subtitles of a job over HTTP, also of text that is not saved, and marks in its segments."""

from dataclasses import replace
from datetime import timedelta

import pytest
import srt

from app.transcript.formats import FORMATS
from app.transcript.rendering import CUE_FORMATS
from tests.api.fake_service import TRANSCRIPT, segment
from workers.messages import SAMPLE_RATE

MS = timedelta(milliseconds=1)

TALK = replace(
    TRANSCRIPT,
    samples=60 * SAMPLE_RATE,
    speech=((8_000, 40 * SAMPLE_RATE),),
    segments=(
        segment("The quick brown fox jumps over the lazy dog.", 0.5, 3.0),
        segment("Then it went home, because it was late.", 3.1, 5.0),
        segment("Über all that, nobody was glad.", 8.0, 10.0),
        segment("Amen.", 12.0, 13.0),
    ),
)


@pytest.fixture
def job(site):
    site.service.transcript = TALK
    return site.finished(site.submitted(word_timestamps="true"))["id"]


def cues(site, job, **params):
    answer = site.client.get(f"/v1/jobs/{job}/cues", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def posted(site, job, segments, **params):
    return site.client.post(f"/v1/jobs/{job}/cues", params=params, json={"segments": segments})


def segments(site, job, revision=None):
    params = {} if revision is None else {"revision": revision}
    return site.client.get(f"/v1/jobs/{job}/segments", params=params).raise_for_status().json()["segments"]


def put(site, job, body):
    answer = site.client.put(f"/v1/jobs/{job}/segments", headers={"if-match": "*"}, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["segments"]


def error(answer):
    body = answer.json()["error"]
    return answer.status_code, body["code"], body["param"]


def seen(document):
    """The times (ms) and the lines of the cues."""
    return [(round(cue["start"] * 1000), round(cue["end"] * 1000), cue["lines"]) for cue in document["cues"]]


def in_file(site, job, **params):
    file = site.client.get(f"/v1/jobs/{job}/result", params={"format": "srt"} | params).text
    return [(round(cue.start / MS), round(cue.end / MS), cue.content.split("\n")) for cue in srt.parse(file)]


EDITED = [
    {"text": "The quick brown fox jumps over the lazy dog.", "marks": [{"at": 16, "kind": "break"}]},
    {"text": "Then it went home, since it was very, very late, and all were asleep."},
    {"text": "Über all that, nobody was glad.", "end": 9.4},
    {"text": "Amen.", "marks": [{"at": 0, "kind": "join"}]},
]


def edited(site, job):
    return [old | new for old, new in zip(segments(site, job), EDITED, strict=True)]


@pytest.mark.parametrize(
    "params", [{}, {"profile": "bbc"}, {"max_line_chars": 20, "max_lines": 1, "fps": 25}]
)
def test_cues_are_those_of_the_file_before_and_after_a_correction_is_saved(site, job, params):
    assert seen(cues(site, job, **params)) == in_file(site, job, **params)
    body = edited(site, job)
    preview = posted(site, job, body, **params)
    assert (preview.status_code, preview.headers["content-type"]) == (200, "application/json")
    assert site.job(job)["revision"] == preview.json()["revision"] == 0
    put(site, job, {"segments": body})
    saved = cues(site, job, **params)
    assert seen(saved) == seen(preview.json()) == in_file(site, job, **params)
    assert saved["cues"] == preview.json()["cues"]
    assert saved["revision"] == 1
    assert seen(cues(site, job, revision="original", **params)) == in_file(site, job, revision=0, **params)


def test_a_cue_says_where_its_text_comes_from_and_what_is_wrong(site, job):
    first, *_, last = cues(site, job, max_cps=5)["cues"]
    assert first == {
        "number": 1,
        "start": 0.5,
        "end": first["end"],
        "lines": ["The quick brown fox", "jumps over the lazy dog."],
        "speakers": [None, None],
        "language": "en",
        "cps": round(44 / (first["end"] - 0.5), 1),
        "segments": [{"id": "0-0", "index": 0, "from": 0, "to": 44}],
        "problems": [
            {"limit": "max_cps", "value": first["cps"], "allowed": 5.0, "cures": ["shorten", "start"]}
        ],
    }
    assert last["segments"] == [{"id": "0-3", "index": 3, "from": 0, "to": 5}]
    assert cues(site, job, profile="bbc")["limits"] == {
        "max_line_chars": 37,
        "max_lines": 2,
        "max_cps": 15.0,
        "min_cue_s": 1.0,
        "max_cue_s": 7.0,
        "min_gap_s": 0.0,
    }


def test_parts_of_new_segments_are_found_by_their_place(site, job):
    body = segments(site, job)
    body.insert(
        3, {"start": 10.5, "end": 11.5, "text": "𝄞 Well, well.", "marks": [{"at": 8, "kind": "break"}]}
    )
    found = posted(site, job, body, start=10.4, end=11.6).json()["cues"]
    assert [(cue["lines"], cue["segments"][0]["index"]) for cue in found] == [
        (["𝄞 Well,"], 3),
        (["well."], 3),
    ]
    assert [(part["from"], part["to"]) for cue in found for part in cue["segments"]] == [(0, 7), (8, 13)]
    assert found[1]["segments"][0]["marks"] == [{"at": 8, "kind": "break"}]
    assert "marks" not in found[0]["segments"][0]


def test_a_span_has_the_cues_that_overlap_it_with_their_numbers(site, job):
    everything = cues(site, job)
    assert everything["total"] == len(everything["cues"]) == 4
    assert [cue["number"] for cue in cues(site, job, start=4, end=8.5)["cues"]] == [2, 3]
    third = everything["cues"][2]
    apart = cues(site, job, start=everything["cues"][1]["end"], end=third["start"])
    assert (apart["cues"], apart["total"]) == ([], 4)
    assert cues(site, job, start=third["start"], end=third["end"])["cues"] == [third]
    assert cues(site, job, start=1000)["cues"] == []


def test_marks_are_read_corrected_and_restored(site, job):
    assert not any("marks" in entry for entry in segments(site, job))
    body = segments(site, job)
    body[0]["marks"] = [{"at": 17, "kind": "break"}, {"at": 4, "kind": "join"}]  # inside a word
    after = put(site, job, {"segments": body})
    marks = [{"at": 4, "kind": "join"}, {"at": 16, "kind": "break"}]
    assert [entry.get("marks") for entry in after] == [marks, None, None, None]
    assert segments(site, job) == after
    del body[0]["marks"]
    body[0]["text"] = "A very quick brown fox jumps over the lazy dog."
    moved = put(site, job, {"segments": body})
    assert moved[0]["marks"] == [{"at": 7, "kind": "join"}, {"at": 19, "kind": "break"}]
    body[0]["marks"] = []
    assert "marks" not in put(site, job, {"segments": body})[0]
    assert put(site, job, {"revision": 1}) == after
    assert segments(site, job, 1) == after
    assert "marks" not in site.client.get(f"/v1/jobs/{job}/result", params={"format": "verbose_json"}).text


def test_cues_that_the_client_has_are_not_sent_again(site, job):
    path = f"/v1/jobs/{job}/cues"
    first = site.client.get(path, params={"profile": "bbc"})
    known = {"if-none-match": first.headers["etag"]}
    assert site.client.get(path, params={"profile": "bbc"}, headers=known).status_code == 304
    for other in ({}, {"profile": "bbc", "start": 1}, {"profile": "bbc", "format": "vtt"}):
        assert site.client.get(path, params=other, headers=known).status_code == 200
    put(site, job, {"segments": edited(site, job)})
    assert site.client.get(path, params={"profile": "bbc"}, headers=known).status_code == 200


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ({"at": 44, "kind": "break"}, "segments[0] has a mark at 44, and its text has 44 characters"),
        ({"at": -1, "kind": "break"}, "`segments[0].marks.0.at`"),
        ({"at": 1.5, "kind": "break"}, "`segments[0].marks.0.at`"),
        ({"at": 1, "kind": "split"}, "`segments[0].marks.0.kind`"),
        ({"kind": "join"}, "`segments[0].marks.0.at`"),
        ("here", "`segments[0].marks.0`"),
    ],
)
def test_marks_that_make_no_sense_are_refused(site, job, mark, message):
    body = segments(site, job)
    body[0]["marks"] = [mark]
    answer = posted(site, job, body)
    assert error(answer) == (400, None, "segments[0]")
    assert message in answer.json()["error"]["message"]
    body[0]["marks"] = [{"at": 0, "kind": "join"}] * 1001
    assert error(posted(site, job, body)) == (400, None, "segments[0]")


def test_requests_that_make_no_sense_are_refused(site, job):
    path = f"/v1/jobs/{job}/cues"
    for form in {*FORMATS, "verbose_json"} - CUE_FORMATS:
        assert error(site.client.get(path, params={"format": form})) == (400, None, "format")
    assert error(site.client.get(path, params={"start": 5, "end": 5})) == (400, None, "end")
    assert error(site.client.get(path, params={"start": "nan"})) == (400, None, "start")
    assert error(site.client.get(path, params={"revision": 7})) == (404, "revision_not_found", "revision")
    assert error(site.client.post(path, json={"revision": 0})) == (400, None, "segments")
    assert error(site.client.post(path, json=[])) == (400, None, None)
    assert error(site.client.post(path, params={"revision": 0}, json={"segments": []}))[0] == 400
    assert error(posted(site, job, edited(site, job)[::-1])) == (400, None, "segments[1]")
    plain = site.client.post(path, content=b"{}", headers={"content-type": "text/plain"})
    assert error(plain)[0] == 415
    assert error(site.client.get("/v1/jobs/0123456789abcdef0123456789abcdef/cues"))[0] == 404
    assert error(site.client.post(path, content=b"", headers={"content-type": "application/json"}))[0] == 400
    cyrillic = [segments(site, job)[0] | {"text": "Привет"}]
    assert error(posted(site, job, cyrillic, format="scc")) == (400, "unsuitable_format", "format")
    assert posted(site, job, cyrillic, format="stl").json()["cues"][0]["lines"] == ["Привет"]
    assert posted(site, job, []).json()["cues"] == []


def test_previews_count_as_corrections(serve):
    site = serve(max_uploads=1)
    job = site.finished(site.submitted())["id"]
    headers = {"content_type": "application/json", "expect": "100-continue"}
    with site.begin(f"POST /v1/jobs/{job}/cues", length=16, **headers) as connection:
        assert connection.recv(1000).startswith(b"HTTP/1.1 100"), "the place is taken, the body awaited"
        assert error(posted(site, job, []))[:2] == (429, "too_many_corrections")
        connection.sendall(b'{"segments": []}')
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
    assert posted(site, job, []).status_code == 200
