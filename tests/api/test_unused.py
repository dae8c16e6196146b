"""What the service does not know, or does not use: refused on its own paths, named in a header on others'."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.http.forms import JobForm
from app.common.options import FILE_OPTIONS, Options
from app.common.suggestions import nearest_name
from app.server.errors import names_of
from app.transcript.formats import FORMATS
from app.transcript.rendering import without_effect
from tests.api.conftest import FORM, FORM_END, RECORDING, Serve, Site, form
from tests.openapi_checks import form_of

HEADER = "x-whisperfleet-warning"
KEY = "sk-one"


def refusal(answer: Any) -> tuple[int, str | None, str]:
    error = answer.json()["error"]
    return answer.status_code, error["param"], error["message"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("max_lines_chars", "`max_lines_chars` is not known here (did you mean `max_line_chars`?)"),
        ("Num-Speakers", "`Num-Speakers` is not known here (did you mean `num_speakers`?)"),
        ("lang", "`lang` is not known here (did you mean `language`?)"),
        ("initial_prompt", "`initial_prompt` is not known here (did you mean `prompt`?)"),
        ("zzz", "`zzz` is not known here: leave it out, or see /docs"),
        ("", "`` is not known here: leave it out, or see /docs"),
        ("query", "`query` is not known here: leave it out, or see /docs"),
        ("response_format", "`response_format` is not known here: choose the format of its result"),
        ("timestamp_granularities[]", "send `word_timestamps=true`"),
        ("keywords[]", "send `hotwords`, separated by commas"),
        ("include[]", "has the probability of each word"),
    ],
)
def test_a_job_with_an_unknown_option_is_refused_in_every_kind_of_body(
    site: Site, name: str, message: str
) -> None:
    value = "secret"
    answers = [
        site.submit(**{name: value}),
        site.client.post("/v1/jobs", json={"url": "https://example.org/a", name: value}),
        site.client.post(
            "/v1/jobs", params={name: value}, content=RECORDING, headers={"Content-Type": "audio/wav"}
        ),
    ]
    for answer in answers:
        assert refusal(answer)[:2] == (400, name)
        assert message in refusal(answer)[2]
        assert value not in answer.text
    assert site.client.get("/v1/jobs").json()["data"] == []
    assert not site.left_files


def test_an_unknown_option_is_refused_before_the_file_arrives(site: Site) -> None:
    body = form(max_lines_chars="3")
    with site.begin("POST /v1/jobs", body, length=10**9, **FORM) as connection:
        assert connection.recv(4096).startswith(b"HTTP/1.1 400")


def test_blank_and_known_fields_are_accepted(site: Site) -> None:
    assert site.submit(unknown=" ", tags="a", title="b", start="0").status_code == 202


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/v1/jobs?stauts=running", "`stauts` is not known here (did you mean `status`?)"),
        ("/v1/jobs/archive?ids=a&response_format=srt", "(did you mean `format`?)"),
        ("/v1/workers?verbose=1", "`verbose` is not known here: leave it out"),
        ("/v1/workers?=1", "`` is not known here: leave it out"),
        ("/v1/jobs?query=talk", "`query` is not known here"),
        (f"/v1/jobs/{'0' * 32}/audio?formats=flac", "(did you mean `format`?)"),
        (f"/v1/jobs/{'0' * 32}/segments?revisions=1", "(did you mean `revision`?)"),
    ],
)
def test_unknown_parameters_are_refused(site: Site, path: str, message: str) -> None:
    status, param, text = refusal(site.client.get(path))
    assert (status, param) == (400, path.partition("?")[2].rpartition("&")[2].partition("=")[0])
    assert message in text


def test_links_and_blank_parameters_are_known_everywhere(site: Site) -> None:
    assert site.client.get("/v1/jobs?zzz=&expires=1&signature=x").status_code == 200
    assert site.client.get("/v1/me?expires=1&signature=x&shared=y").status_code == 200


def test_a_key_is_checked_before_names(serve: Serve, tmp_path: Any) -> None:
    site = serve(api_keys=(KEY,))
    assert site.client.get("/v1/jobs?zzz=1").status_code == 401
    assert site.client.get("/v1/jobs?zzz=1", headers={"Authorization": f"Bearer {KEY}"}).status_code == 400


def test_clients_of_other_programs_read_what_was_ignored(site: Site) -> None:
    def warning(answer: Any) -> str | None:
        assert answer.status_code == 200, answer.text
        return answer.headers.get(HEADER)

    def asr(query: str) -> Any:
        return site.client.post(f"/asr?{query}", files={"audio_file": ("a.wav", RECORDING)})

    assert warning(site.transcribe(**{"language": "en", "include[]": ""})) is None
    assert warning(site.transcribe(max_lines_chars="secret", zzz="secret")) == (
        "ignored: max_lines_chars (did you mean max_line_chars?), zzz"
    )
    assert warning(site.transcribe("translations", language="de")) == (
        "ignored: language (did you mean languages?)"
    )
    assert warning(site.transcribe("speech/timestamps", model=None, treshold="0.5")) == (
        "ignored: treshold (did you mean threshold?)"
    )
    assert warning(site.transcribe("transcriptions?api-version=1", timestamp_granularities="segment")) == (
        "ignored in the query: api-version"
    )
    assert warning(asr("output=srt&encode=true&initial_prompt=Hi")) is None
    assert warning(asr("output=srt&prompt=Hi&times=true")) == (
        "ignored in the query: prompt (did you mean initial_prompt?); "
        "without effect: times (only in txt, docx, md)"
    )
    assert warning(site.client.get("/v1/models?limit=5")) == "ignored in the query: limit"
    assert warning(site.client.get("/v1/models?=1")) == 'ignored in the query: ""'
    assert warning(site.transcribe(**{"": "1", "model ": "1"})) == (
        'ignored: "", model (did you mean model?)'
    )


def test_options_without_effect_are_named(site: Site) -> None:
    answer = site.transcribe(response_format="text", max_line_chars="30", num_speakers="2", srt_bom="false")
    assert answer.headers[HEADER] == (
        "without effect: num_speakers (needs diarize), "
        f"max_line_chars (only in {', '.join(name for name, known in FORMATS.items() if known.has_cues)})"
    )
    assert HEADER not in site.transcribe(response_format="srt", max_line_chars="30", word_level="0").headers
    streamed = site.transcribe(response_format="srt", max_line_chars="30", stream="true")
    assert streamed.headers[HEADER].startswith("without effect: max_line_chars")
    job = site.submit(max_line_chars="30", num_speakers="2")
    assert job.headers[HEADER] == "without effect: num_speakers (needs diarize)"
    path = f"/v1/jobs/{site.finished(job.json()['id'])['id']}/result"
    assert HEADER not in site.client.get(f"{path}?format=srt&max_line_chars=30").headers
    assert site.client.get(f"{path}?format=srt&word_level=true").headers[HEADER] == (
        "without effect: word_level (only in vtt, ass)"
    )


def test_names_of_attackers_do_no_harm(site: Site) -> None:
    nasty = {f"ü{number}\x7f\t" + "x" * 500: "secret" for number in range(200)}
    answer = site.transcribe(**nasty)
    assert answer.status_code == 200
    header = answer.headers[HEADER]
    assert header.isascii()
    assert header.isprintable()
    assert len(header) < 1000
    assert header.endswith("and 192 more")
    body = form(model="whisper-1", **{"a\x01set-cookie: a=b": "1"}) + FORM_END
    with site.begin("POST /v1/audio/transcriptions", body, **FORM) as connection:
        head = connection.recv(4096).partition(b"\r\n\r\n")[0]
    assert b"ignored: a\\x01set-cookie: a=b" in head
    many = {f"n{number:x}": 1 for number in range(5000)} | {"url": "https://example.org"}
    for answer in (
        site.client.post("/v1/jobs", json=many),
        site.client.get("/v1/jobs?" + "&".join(f"{number:x}=1" for number in range(9000))),
    ):
        assert answer.status_code == 400
        assert len(answer.text) < 2000


def test_pages_elsewhere_may_read_the_header(serve: Serve) -> None:
    site = serve(cors_origins=("https://other.example",))
    answer = site.transcribe(zzz="1", headers={"Origin": "https://other.example"})
    assert answer.headers[HEADER] == "ignored: zzz"
    assert HEADER in answer.headers["access-control-expose-headers"].lower()


def test_the_header_and_the_closed_form_are_documented(site: Site) -> None:
    document = site.client.get("/openapi.json").json()
    answer = document["paths"]["/v1/audio/transcriptions"]["post"]["responses"]["200"]
    assert {name.lower() for name in answer["headers"]} == {HEADER}
    assert form_of(document, document["paths"]["/v1/jobs"]["post"])["additionalProperties"] is False


@pytest.mark.parametrize("file_format", [*FORMATS, "text", "verbose_json", "diarized_json", None])
def test_every_option_of_files_has_an_effect_in_some_format(file_format: str | None) -> None:
    changed = {name: not field.default for name, field in Options.model_fields.items()}
    options = Options.model_construct(**changed)
    useless = set(without_effect(options, FILE_OPTIONS, file_format))
    assert (useless == FILE_OPTIONS) == (
        file_format in {"tsv", "json", "text", "verbose_json", "diarized_json"}
    )
    assert (useless == set()) == (file_format is None)


@given(st.text(max_size=200))
def test_a_suggestion_is_a_name_that_is_known(name: str) -> None:
    known = names_of(JobForm)
    assert nearest_name(name, known) in {None, *known}
    assert all(nearest_name(one.upper(), known) == one for one in known)
