"""API keys, CORS and request ids."""

import contextlib
import http.client
import re

import httpx
import pytest

from tests.api.conftest import FORM, form
from tests.api.fake_service import catalogue

KEYS = ("sk-first", "sk-zweiter-Schlüssel")
EVERYWHERE = ["/", "/docs", "/openapi.json", "/v1/models", "/v1/workers", "/nowhere", "/health", "/ready"]


@pytest.fixture
def locked(serve):
    return serve(api_keys=KEYS)


def bearer(key):
    return {"Authorization": f"Bearer {key}".encode()}


def test_paths_without_a_key(locked):
    open_paths = {path for path in EVERYWHERE if locked.client.get(path).status_code != 401}
    assert open_paths == {"/", "/health", "/ready"}


def test_every_operation_needs_a_key(locked):
    document = locked.client.get("/openapi.json", headers=bearer(KEYS[0])).json()
    for path, methods in document["paths"].items():
        if path in ("/health", "/ready"):
            continue
        for method in methods:
            refused = locked.client.request(method, re.sub(r"\{\w+\}", "0" * 32, path))
            assert (refused.status_code, path) == (401, path)
            assert refused.headers["www-authenticate"] == "Bearer"


def test_no_check_of_a_request_waits_for_a_thread(locked, monkeypatch):
    """A new thread holds the event loop until a core runs it."""
    monkeypatch.setattr("fastapi.dependencies.utils.run_in_threadpool", None)
    monkeypatch.setattr("fastapi.routing.run_in_threadpool", None)
    document = locked.client.get("/openapi.json", headers=bearer(KEYS[0])).json()
    paths = {
        re.sub(r"\{\w+\}", "0" * 32, path) for path, methods in document["paths"].items() if "get" in methods
    }
    for path in paths - {"/v1/workers/events"}:
        assert locked.client.get(path, headers=bearer(KEYS[0])).status_code != 500, path


def test_public_docs_need_no_key(serve):
    site = serve(api_keys=KEYS, public_docs=True)
    open_paths = {path for path in EVERYWHERE if site.client.get(path).status_code != 401}
    assert open_paths == {"/", "/health", "/ready", "/docs", "/openapi.json"}
    assets = set(re.findall(r'(?:src|href)="([^"]+)"', site.client.get("/docs").text))
    assert len(assets) == 4
    assert {site.client.get(f"/{asset}").status_code for asset in assets} == {200}
    for path in ("/docs/assets/../../v1/models", "/docs/assets/%2e%2e/%2e%2e/main.py", "/docs/../v1/models"):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", site.port, timeout=10)) as connection:
            connection.request("GET", path)
            assert connection.getresponse().status in (401, 404), path


def test_every_key_is_accepted(locked):
    for key in KEYS:
        for headers in (bearer(key), {"Authorization": f"bearer  {key}".encode()}):
            assert locked.client.get("/v1/models", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer("sk-wrong"),
        bearer("sk-firs"),
        {"Authorization": "Bearer"},
        {"Authorization": "Basic c2stZmlyc3Q6"},
        bearer("ÿ"),
    ],
)
def test_missing_and_wrong_keys(locked, headers):
    response = locked.client.get("/v1/models", headers=headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    error = response.json()["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_api_key")


def test_refusal_comes_before_the_body_is_read(locked):
    with locked.begin("POST /v1/audio/transcriptions", form(), length=1_000_000, **FORM) as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 401")
    assert not locked.uploads


def test_refusal_arrives_despite_a_large_body(locked):
    # http.client, as requests and urllib, sends everything before it reads the response.
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", locked.port, timeout=10)) as connection:
        connection.request("POST", "/v1/audio/transcriptions", bytes(20_000_000))
        response = connection.getresponse()
        assert (response.status, response.headers["connection"]) == (401, "close")
        assert b"invalid_api_key" in response.read()
    assert not locked.uploads


def test_refusal_instead_of_100_continue(locked):
    with locked.begin("POST /v1/models", length=9, expect="100-continue") as connection:
        received = b"".join(iter(lambda: connection.recv(4096), b""))
    assert received.startswith(b"HTTP/1.1 401")


def test_preflight_needs_no_key(serve):
    site = serve(api_keys=KEYS, cors_origins=("https://page.example",))
    preflight = {
        "Origin": "https://page.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    response = site.client.options("/v1/audio/transcriptions", headers=preflight)
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == "https://page.example"
    assert response.headers["access-control-allow-headers"] == "authorization"
    stranger = site.client.options("/v1/models", headers=preflight | {"Origin": "https://other.example"})
    assert "access-control-allow-origin" not in stranger.headers


@pytest.mark.parametrize(("path", "status"), [("/v1/models", 401), ("/nowhere", 401), ("/health", 200)])
def test_errors_have_cors_headers(serve, path, status):
    site = serve(api_keys=KEYS, cors_origins=("*",))
    response = site.client.get(path, headers={"Origin": "https://page.example"})
    assert (response.status_code, response.headers["access-control-allow-origin"]) == (status, "*")


def test_without_origins_there_is_no_cors(site):
    response = site.client.get("/health", headers={"Origin": "https://page.example"})
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_every_response_has_a_request_id(site, locked, method):
    for one in (site, locked):
        for path in EVERYWHERE:
            response = one.client.request(method, path)
            assert re.fullmatch(r"req_[0-9a-f]{32}", response.headers["x-request-id"]), path


@pytest.mark.parametrize(
    ("given", "kept"), [("abc-1.2:3_Z", True), ("a b", False), ("x" * 129, False), ("", False)]
)
def test_valid_request_ids_are_echoed(site, given, kept):
    response = site.client.get("/health", headers={"x-request-id": given})
    assert (response.headers["x-request-id"] == given) is kept


def test_unexpected_errors_have_a_request_id_and_cors_headers(serve):
    site = serve(cors_origins=("*",))
    site.service.fleet.workers = lambda: 1 / 0
    response = site.client.get(
        "/v1/workers", headers={"x-request-id": "mine", "Origin": "https://page.example"}
    )
    assert (response.status_code, response.headers["x-request-id"]) == (500, "mine")
    assert response.headers["access-control-allow-origin"] == "*"
    assert "mine" in response.json()["error"]["message"]


def test_every_response_says_that_the_demo_model_is_in_use(site):
    site.service.fleet.catalogue = catalogue("demo")
    responses: list[httpx.Response] = [site.client.get(path) for path in EVERYWHERE]
    assert {response.headers["x-whisperfleet-model"] for response in [*responses, site.transcribe()]} == {
        "demo"
    }
    site.service.fleet.catalogue = catalogue()
    assert "x-whisperfleet-model" not in site.client.get("/health").headers
