"""The service below the root path of a proxy, which removes it from requests or does not."""

import base64

import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs

from app.settings import OWN_PATHS, Settings
from tests.api.waiting import wait_for

KEY = "3f5c"
AUTHORIZED = {"authorization": f"Bearer {KEY}"}
TUS = {"Tus-Resumable": "1.0.0"}
ROOT = "/media/whisper"


@pytest.fixture
def below(serve):
    return serve(root_path=ROOT, api_keys=(KEY,))


@pytest.fixture(params=["", ROOT], ids=["removed", "kept"])
def sent(request):
    """What the proxy leaves of the root path."""
    return request.param


def test_pages_and_their_files(below, sent):
    for path in ("/", "/web/bundle/main.js", "/web/icon.svg", "/health", "/ready"):
        assert below.client.get(sent + path).status_code == 200, path
    for path in ("/docs", "/openapi.json", "/docs/assets/swagger-ui.css", "/v1/models"):
        assert below.client.get(sent + path).status_code == 401, path
        assert below.client.get(sent + path, headers=AUTHORIZED).status_code == 200, path
    assert below.client.get(sent + "/nowhere", headers=AUTHORIZED).status_code == 404
    assert below.client.get(sent + "whatever", headers=AUTHORIZED).status_code == 404


def test_the_page_has_a_slash_at_its_end(below):
    for query in ("", "?q=a%20b&page=2"):
        answer = below.client.get(ROOT + query)
        assert (answer.status_code, answer.headers["location"]) == (307, f"{ROOT}/{query}")


def test_clients_of_the_document_use_the_root_path(below, sent):
    document = below.client.get(sent + "/openapi.json", headers=AUTHORIZED).json()
    assert document["servers"] == [{"url": ROOT}]


def test_jobs_links_and_etags(below, sent):
    submitted = below.client.post(
        f"{sent}/v1/jobs", files={"file": ("talk.wav", b"RIFF")}, headers=AUTHORIZED
    )
    assert submitted.status_code == 202
    job = submitted.json()["id"]
    assert submitted.headers["location"] == f"{ROOT}/v1/jobs/{job}"
    address = f"{sent}/v1/jobs/{job}"
    wait_for(lambda: below.client.get(address, headers=AUTHORIZED).json()["status"] == "succeeded")
    segments = below.client.get(f"{address}/segments", headers=AUTHORIZED)
    known = AUTHORIZED | {"If-None-Match": segments.headers["etag"]}
    assert below.client.get(f"{address}/segments", headers=known).status_code == 304
    link = below.client.post(f"{address}/links", json={"path": "audio"}, headers=AUTHORIZED).json()
    assert link["path"].startswith(f"{ROOT}/v1/jobs/{job}/audio?expires=")
    assert below.client.get(sent + link["path"].removeprefix(ROOT)).status_code == 200
    altered = link["path"].removeprefix(ROOT).replace("audio", "result")
    assert below.client.get(sent + altered).status_code == 403


def test_resumable_uploads(below, sent):
    metadata = {"Upload-Length": "4", "Upload-Metadata": f"filename {base64.b64encode(b'a.wav').decode()}"}
    created = below.client.post(f"{sent}/v1/uploads", headers=AUTHORIZED | TUS | metadata)
    assert (created.status_code, created.headers["tus-resumable"]) == (201, "1.0.0")
    location = created.headers["location"]
    assert location.startswith(f"{ROOT}/v1/uploads/")
    address = sent + location.removeprefix(ROOT)
    part = {"Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
    # As clients behind some firewalls send it: the middleware must know the path.
    override = AUTHORIZED | TUS | part | {"X-HTTP-Method-Override": "PATCH"}
    assert below.client.post(address, headers=override, content=b"RIFF").status_code == 204
    head = below.client.head(address, headers=AUTHORIZED | TUS)
    assert (head.headers["upload-offset"], head.headers["tus-resumable"]) == ("4", "1.0.0")
    job = below.client.post(
        f"{sent}/v1/jobs", json={"upload": location.rpartition("/")[2]}, headers=AUTHORIZED
    )
    assert job.status_code == 202
    missing = below.client.head(f"{sent}/v1/uploads/nowhere", headers=AUTHORIZED)
    assert missing.headers["tus-resumable"] == "1.0.0", "each error has it as well"


def test_probes_by_any_host_name(serve, sent):
    site = serve(root_path=ROOT)
    strange = {"host": "pod-1.media.example"}
    assert site.client.get(f"{sent}/health", headers=strange).status_code == 200
    assert site.client.get(f"{sent}/v1/models", headers=strange).status_code == 421


@pytest.mark.parametrize(
    ("value", "path"), [("/whisper", "/whisper"), ("/a/b.c/", "/a/b.c"), ("/", ""), ("", "")]
)
def test_root_paths(value, path):
    assert Settings(root_path=value, _env_file=None).root_path == path


@pytest.mark.parametrize(
    "value", ["whisper", "//", "/a//b", "/a b", "/..", "/a/../b", "http://x/y", "/v1", "/web/whisper", "/ä"]
)
def test_root_paths_that_cannot_work(value):
    with pytest.raises(ValidationError, match="whisper"):
        Settings(root_path=value, _env_file=None)


def test_no_root_path_can_hide_a_path_of_the_service(site):
    document = site.client.get("/openapi.json").json()
    assert {path.split("/")[1] for path in document["paths"]} <= OWN_PATHS


@pytest.mark.parametrize(
    ("proxies", "forwarded", "client"),
    [
        ({}, "192.0.2.9, 203.0.113.5", "203.0.113.5"),  # the first is what the client claimed
        ({"trusted_proxies": ("10.0.0.0/8",)}, "203.0.113.5", "127.0.0.1"),
        ({}, "x" * 9000, "x" * 64),
    ],
    ids=["trusted", "a stranger", "long"],
)
def test_the_log_names_the_client_that_a_trusted_proxy_names(serve, proxies, forwarded, client):
    site = serve(**proxies)
    with capture_logs() as lines:
        site.client.get("/nowhere", headers={"x-forwarded-for": forwarded})
        wait_for(lambda: lines)
    assert lines[0]["client"] == client


@pytest.mark.parametrize("value", ["*", "proxy", "10.0.0.1/8", "10.0.0.0/33"])
def test_proxies_are_addresses_or_networks(value):
    with pytest.raises(ValidationError, match="addresses or networks"):
        Settings(trusted_proxies=value, _env_file=None)
