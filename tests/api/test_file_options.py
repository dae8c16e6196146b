"""Documents of every endpoint, and files in other options than those of the job."""

from io import BytesIO
from zipfile import ZipFile

import pytest
from docx import Document

from app.common.options import FILE_OPTIONS
from app.transcript.formats import DOCUMENT_FORMATS, FORMATS

TEXT = "The quick brown fox. Über the lazy dog."
STAMPED = f"[00:00:00] {TEXT}"


def paragraphs(content: bytes) -> list[str]:
    return [paragraph.text for paragraph in Document(BytesIO(content)).paragraphs]


@pytest.fixture
def job(site):
    return site.finished(
        site.submitted(b"x" * 1000, times="true", max_line_chars="12", title="Foxes & dogs")
    )["id"]


def result(site, job, **query):
    answer = site.client.get(f"/v1/jobs/{job}/result", params=query)
    assert answer.status_code == 200, answer.text
    return answer


def test_options_of_a_result_take_the_place_of_those_of_the_job(site, job):
    as_asked = result(site, job, format="md")
    assert as_asked.text == f"# Foxes & dogs\n\n{STAMPED}\n"
    other = result(site, job, format="md", times="false")
    assert other.text == f"# Foxes & dogs\n\n{TEXT}\n"
    assert other.headers["etag"] != as_asked.headers["etag"]
    same = site.client.get(
        f"/v1/jobs/{job}/result", params={"format": "md"}, headers={"if-none-match": as_asked.headers["etag"]}
    )
    assert same.status_code == 304
    assert "The quick brown fox." not in result(site, job).text
    assert "The quick brown fox." in result(site, job, max_line_chars="30").text
    assert paragraphs(result(site, job, format="docx").content) == ["Foxes & dogs", STAMPED]
    response = site.client.get("/v1/jobs/archive", params={"ids": job, "format": "docx", "times": "false"})
    [file] = ZipFile(BytesIO(response.content)).infolist()
    assert file.filename == "Foxes & dogs.docx"
    assert paragraphs(ZipFile(BytesIO(response.content)).read(file)) == ["Foxes & dogs", TEXT]


def test_a_new_title_is_a_new_document(site, job):
    before = result(site, job, format="docx")
    site.client.patch(f"/v1/jobs/{job}", json={"title": "Dogs"}).raise_for_status()
    after = result(site, job, format="docx")
    assert before.headers["etag"] != after.headers["etag"]
    assert paragraphs(after.content)[0] == "Dogs"
    assert after.headers["content-disposition"] == "inline; filename*=utf-8''Dogs.docx"


@pytest.mark.parametrize(
    "query",
    [
        {"times": "perhaps"},
        {"speakers": ""},
        {"max_line_chars": "3"},
        {"fps": "1_0"},
        {"profile": "x"},
        {"format": "pdf"},
    ],
)
def test_options_that_make_no_sense(site, job, query):
    [name] = query
    for path in (f"/v1/jobs/{job}/result", f"/v1/jobs/archive?ids={job}"):
        answer = site.client.get(path, params={**query, **({"ids": job} if "archive" in path else {})})
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, name)


def test_a_link_has_the_options_that_it_was_asked_for_with(site, job):
    body = {"path": "result", "format": "txt", "times": False, "max_line_chars": 20}
    path = site.client.post(f"/v1/jobs/{job}/links", json=body).raise_for_status().json()["path"]
    assert "&times=false" in path
    assert site.client.get(path).text == result(site, job, format="txt", times="false").text
    refused = site.client.post(f"/v1/jobs/{job}/links", json={"path": "result", "times": "yes"})
    assert refused.status_code == 400


@pytest.mark.parametrize("form", DOCUMENT_FORMATS)
def test_synchronous_endpoints_have_documents(site, form):
    answers = [
        site.transcribe(response_format=form, times="true"),
        site.client.post(
            "/asr", params={"output": form, "times": "true"}, files={"audio_file": ("talk.wav", b"x")}
        ),
    ]
    for answer in answers:
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == FORMATS[form].content_type
        if form == "docx":
            assert paragraphs(answer.content)[-1] == STAMPED
        else:
            assert "[00:00:00] The quick brown fox." in answer.text


def test_a_client_that_is_generated_sends_no_defaults(site):
    parameters = site.client.get("/openapi.json").json()["paths"]["/v1/jobs/{job_id}/result"]["get"][
        "parameters"
    ]
    schemas = {each["name"]: each["schema"] for each in parameters}
    assert schemas.keys() > FILE_OPTIONS
    assert not any(schemas[name].get("default") for name in FILE_OPTIONS)
