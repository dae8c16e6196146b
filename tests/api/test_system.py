"""Models, workers, health, and the documentation."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi import applications

from app.common.options import Options
from tests.api.fake_service import OTHER_MODEL, catalogue
from tests.openapi_checks import form_of


def test_models(site):
    listed = site.client.get("/v1/models").json()
    assert listed["object"] == "list"
    assert [model["id"] for model in listed["data"]] == ["tiny", OTHER_MODEL, "whisper-1"]
    assert [model["state"] for model in listed["data"]] == ["loaded", "unloaded", "loaded"]
    assert listed["data"][0].keys() == {"id", "object", "created", "owned_by", "state"}


@pytest.mark.parametrize("name", ["tiny", OTHER_MODEL, "whisper-1"])
def test_one_model(site, name):
    model = site.client.get(f"/v1/models/{name}").json()
    assert (model["id"], model["object"]) == (name, "model")


def test_aliases_are_listed_and_retrieved_as_models(site):
    site.service.fleet.catalogue = catalogue(aliases={"gpt-4o-transcribe": "", "openai/mini": OTHER_MODEL})
    listed = site.client.get("/v1/models").json()["data"]
    assert [(model["id"], model["state"]) for model in listed] == [
        ("tiny", "loaded"),
        (OTHER_MODEL, "unloaded"),
        ("whisper-1", "loaded"),
        ("gpt-4o-transcribe", "loaded"),
        ("openai/mini", "unloaded"),
    ]
    for model in listed:
        assert site.client.get(f"/v1/models/{model['id']}").json() == model


def test_an_alias_means_its_model_everywhere(site):
    site.service.fleet.catalogue = catalogue(aliases={"gpt-4o-transcribe": "", "mini": OTHER_MODEL})
    for alias, model in (("gpt-4o-transcribe", "tiny"), ("mini", OTHER_MODEL)):
        assert site.transcribe(model=alias, response_format="srt").status_code == 200
        assert site.service.calls[-1].model == model
    for alias, model in (("gpt-4o-transcribe", "tiny"), ("mini", OTHER_MODEL)):
        job = site.submit(model=alias, headers={"Idempotency-Key": alias}).json()
        assert job["model"] == model
        # The same request with the model's own name is the same job.
        assert site.submit(model=model, headers={"Idempotency-Key": alias}).json()["id"] == job["id"]


@pytest.mark.parametrize("name", ["", "gpt-4", "a/b/c"])
def test_unknown_models(site, name):
    response = site.client.get(f"/v1/models/{name}")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "model_not_found")


def test_health(site):
    site.service.fleet.catalogue = catalogue("demo")
    health = site.client.get("/health").json()
    assert (health["status"], health["demo"]) == ("ok", True)
    assert health["version"]


def test_ready(site):
    assert site.client.get("/ready").json() == {"status": "ready"}
    site.service.fleet.is_asleep = True
    assert site.client.get("/ready").json() == {"status": "asleep"}
    site.service.fleet.reason = "The model 'large-v3' is not cached; set WHISPER_MODEL."
    response = site.client.get("/ready")
    assert (response.status_code, response.json()["error"]["message"]) == (503, site.service.fleet.reason)


def test_workers(site):
    assert site.client.get("/v1/workers").json() == {"object": "list", "data": site.service.fleet.workers()}


@pytest.mark.parametrize("path", ["/nowhere", "/docs/assets/nothing.js", "/docs/assets/../../main.py", "/v1"])
def test_unknown_paths(site, path):
    response = site.client.get(path)
    assert response.status_code == 404
    assert response.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/audio/transcriptions", "POST"),
        ("POST", "/v1/models", "GET"),
        ("DELETE", "/health", "GET"),
        ("PUT", "/v1/jobs", "GET, POST"),
        ("OPTIONS", f"/v1/jobs/{'0' * 32}", "GET, PATCH, DELETE"),
        ("POST", f"/v1/jobs/{'0' * 32}/audio", "GET"),
    ],
)
def test_wrong_methods(site, method, path, allowed):
    response = site.client.request(method, path)
    assert (response.status_code, response.headers["allow"]) == (405, allowed)
    assert "does not take" in response.json()["error"]["message"]


def test_docs_load_nothing_from_other_hosts(site):
    text = site.client.get("/docs").text
    assert not re.search(r"https?://", text)
    assets = set(re.findall(r'(?:src|href)="([^"]+)"', text))
    assert len(assets) == 4
    for asset in assets:
        assert site.client.get(f"/{asset}").status_code == 200
    script = site.client.get("/web/docs.js").text
    assert 'url: "openapi.json"' in script
    assert "validatorUrl: null" in script


def openapi(site):
    return site.client.get("/openapi.json").json()


def test_others_are_answered_while_the_document_is_built(serve, tmp_path, monkeypatch):
    build, may_build, building = applications.get_openapi, threading.Event(), threading.Event()

    def slow(**parts):
        building.set()
        assert may_build.wait(30)
        return build(**parts)

    monkeypatch.setattr(applications, "get_openapi", slow)
    site = serve(data_dir=tmp_path)
    with ThreadPoolExecutor(1) as background:
        document = background.submit(openapi, site)
        assert building.wait(30)
        assert site.client.get("/health").status_code == 200
        may_build.set()
    assert document.result()["info"]["title"] == "whisperfleet"


def form(document, name):
    return form_of(document, document["paths"][f"/v1/audio/{name}"]["post"])


def test_openapi_describes_every_field_of_our_own_forms(site):
    """The other interfaces have only a file in their forms."""
    document = openapi(site)
    for path, methods in document["paths"].items():
        content = methods.get("post", {}).get("requestBody", {}).get("content", {})
        if not path.startswith("/v1/") or "multipart/form-data" not in content:
            continue
        fields = form_of(document, methods["post"])["properties"]
        text = {name: field for name, field in fields.items() if field.get("format") != "binary"}
        assert not [name for name, field in text.items() if not field.get("description")], path


def test_openapi_has_no_422(site):
    text = site.client.get("/openapi.json").text
    assert '"422"' not in text
    assert "HTTPValidationError" not in text


def test_openapi_documents_errors(site):
    responses = openapi(site)["paths"]["/v1/audio/transcriptions"]["post"]["responses"]
    assert {"200", "400", "401", "404", "413", "415", "429", "500", "503", "507"} < responses.keys()
    assert responses["413"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Error"}
    assert responses["200"]["content"].keys() == {"application/json", "text/plain", "text/event-stream"}
    responses = openapi(site)["paths"]["/asr"]["post"]["responses"]
    assert responses["200"]["content"].keys() == {"text/plain"}
    assert responses["413"]["content"].keys() == {"application/json"}


def test_openapi_documents_every_field(site):
    fields = form(openapi(site), "transcriptions")
    own = {"file", "model", "response_format", "timestamp_granularities[]", "stream", "chunking_strategy"}
    own |= {"include[]", "keywords[]", "known_speaker_names[]", "known_speaker_references[]"}
    own |= {"terms", "terms_as_hotwords"}
    assert fields["properties"].keys() == own | Options.model_fields.keys()
    assert fields["required"] == ["file", "model"]
    assert fields["properties"]["file"]["format"] == "binary"
    assert fields["properties"]["beam_size"] | {"description": ""} == {
        "type": "integer", "minimum": 1, "maximum": 20, "default": 5, "title": "Beam Size", "description": "",
    }  # fmt: skip
    assert fields["properties"]["language"]["type"] == "string"


def test_openapi_of_translations_omits_ignored_fields(site):
    left_out = {"task", "language", "timestamp_granularities[]", "stream"}
    assert not left_out & form(openapi(site), "translations")["properties"].keys()


def test_openapi_documents_the_api_key(serve):
    site = serve(api_keys=("sk",))
    document = site.client.get("/openapi.json", headers={"Authorization": "Bearer sk"}).json()
    assert document["paths"]["/v1/models"]["get"]["security"] == [{"HTTPBearer": []}]
    assert "security" not in document["paths"]["/health"]["get"]
