"""Requests that web pages of other sites make browsers send."""

import socket

import pytest
from structlog.testing import capture_logs

from app.api.http.hosts import AllowedHosts, BrowserGuard, is_own
from app.common.errors import InvalidSetting
from app.settings import load_settings
from tests.cases import read_cases

FOREIGN = ["https://evil.example", "http://127.0.0.1:1", "http://localhost:3000", "null", "file://", "", "x"]
OPEN = ("/health", "/ready")
HOSTS = read_cases("hosts")


@pytest.fixture
def locked(serve):
    return serve(api_keys=("sk-key",), cors_origins=("https://page.example",))


def raw(site, request: str) -> tuple[int, bytes]:
    """The status and the rest of the response to a request, sent as it is."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=5) as connection:
        connection.sendall(request.replace("\n", "\r\n").encode())
        connection.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: connection.recv(4096), b""))
    return int(received.split()[1]), received


class TestHosts:
    @pytest.mark.parametrize("host", HOSTS["own"])
    def test_hosts_that_no_page_of_another_site_can_have(self, site, host):
        for path in ("/v1/models", "/docs", *OPEN):
            assert site.client.get(path, headers={"Host": host}).status_code == 200

    @pytest.mark.parametrize("host", HOSTS["other"])
    def test_other_hosts(self, site, host):
        for method, path in [
            ("GET", "/v1/models"),
            ("GET", "/docs"),
            ("OPTIONS", "/v1/jobs"),
            ("DELETE", "/nowhere"),
        ]:
            response = site.client.request(method, path, headers={"Host": host})
            assert response.status_code == 421, (method, path)
            error = response.json()["error"]
            assert (error["code"], error["type"]) == ("host_not_allowed", "invalid_request_error")
            assert "WHISPER_ALLOWED_HOSTS" in error["message"]
            assert response.headers["x-request-id"].startswith("req_")
        assert [site.client.get(path, headers={"Host": host}).status_code for path in OPEN] == [200, 200]

    def test_nothing_is_stored_or_transcribed(self, site):
        assert site.transcribe(headers={"Host": "evil.example"}).status_code == 421
        assert site.submit(headers={"Host": "evil.example"}).status_code == 421
        assert site.client.get("/v1/jobs").json()["data"] == []
        assert not site.left_files

    def test_names_in_the_settings(self, serve):
        site = serve(host="gpu-box.lan", allowed_hosts="Whisper.example.org.,.one.example,*.two.example:8000")
        statuses = {
            host: site.client.get("/v1/models", headers={"Host": host}).status_code
            for host in [
                *(
                    "gpu-box.lan:8000",
                    "whisper.example.org",
                    "one.example",
                    "a.b.one.example",
                    "a.two.example:1",
                ),
                *(
                    "localhost",
                    "example.org",
                    "a.whisper.example.org",
                    "twoone.example",
                    "two.example",
                    "b.lan",
                ),
            ]
        }
        assert list(statuses.values()) == [200] * 6 + [421] * 5

    def test_all_names(self, serve):
        assert serve(allowed_hosts="*").client.get("/v1/models", headers={"Host": "a.b"}).status_code == 200

    def test_with_keys_names_are_not_checked(self, locked):
        headers = {"Host": "evil.example", "Authorization": "Bearer sk-key"}
        assert locked.client.get("/v1/models", headers=headers).status_code == 200
        assert locked.client.get("/v1/models", headers={"Host": "evil.example"}).status_code == 401

    def test_requests_without_a_host(self, site):
        assert raw(site, "GET /v1/models HTTP/1.0\n\n")[0] == 200
        assert raw(site, "GET /v1/models HTTP/1.1\n\n")[0] == 400

    def test_requests_with_two_hosts(self, site):
        two = "GET /v1/models HTTP/1.1\nHost: localhost\nHost: evil.example\n\n"
        assert raw(site, two)[0] in (400, 421)

    def test_absolute_targets_open_nothing(self, site):
        assert raw(site, "GET http://localhost/v1/models HTTP/1.1\nHost: evil.example\n\n")[0] == 421
        assert raw(site, "GET http://evil.example/health HTTP/1.1\nHost: evil.example\n\n")[0] == 421

    def test_an_upgrade_is_checked_as_any_request(self, site):
        upgrade = "GET /v1/jobs HTTP/1.1\nHost: evil.example\nConnection: Upgrade\nUpgrade: websocket\n\n"
        assert raw(site, upgrade)[0] == 421

    def test_the_refusal_comes_before_the_body(self, site):
        head = (
            "POST /v1/audio/transcriptions HTTP/1.1\nHost: a.b\nContent-Length: 99\nExpect: 100-continue\n\n"
        )
        assert raw(site, head)[0] == 421

    def test_an_allowed_page_can_read_the_refusal(self, serve):
        site = serve(cors_origins=("https://page.example",))
        headers = {"Host": "a.b", "Origin": "https://page.example"}
        response = site.client.get("/v1/models", headers=headers)
        assert response.status_code == 421
        assert response.headers["access-control-allow-origin"] == "https://page.example"

    def test_two_headers_are_both_checked(self):
        hosts = AllowedHosts(["whisper.example.org"])
        assert hosts.allows("whisper.example.org")
        assert not hosts.allows("whisper.example.org, evil.example")


class TestOrigins:
    @pytest.mark.parametrize("origin", FOREIGN)
    def test_foreign_pages_change_nothing(self, site, origin):
        headers = {"Origin": origin}
        for response in (site.submit(headers=headers), site.transcribe(headers=headers)):
            assert response.status_code == 403
            assert response.json()["error"]["code"] == "origin_not_allowed"
            assert "WHISPER_CORS_ORIGINS" in response.json()["error"]["message"]
        job = site.submitted()
        assert site.client.delete(f"/v1/jobs/{job}", headers=headers).status_code == 403
        assert [found["id"] for found in site.client.get("/v1/jobs").json()["data"]] == [job]

    @pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
    def test_requests_that_change_nothing_need_no_origin(self, site, method):
        headers = {"Origin": "https://evil.example"}
        assert site.client.request(method, "/v1/models", headers=headers).status_code in (200, 405)

    def test_the_own_page(self, site):
        for host in (f"127.0.0.1:{site.port}", "localhost:8000", "[::1]:8000", "whisperfleet"):
            headers = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
            assert site.submit(headers=headers).status_code == 202
            assert site.transcribe(headers=headers).status_code == 200

    @pytest.mark.parametrize(
        ("site_of_page", "status"), [("cross-site", 403), ("same-site", 202), ("none", 202)]
    )
    def test_a_form_without_an_origin(self, site, site_of_page, status):
        assert site.submit(headers={"Sec-Fetch-Site": site_of_page}).status_code == status

    def test_origins_in_the_settings(self, serve):
        site = serve(cors_origins=("https://page.example",))
        page = {"Origin": "https://page.example", "Sec-Fetch-Site": "cross-site"}
        response = site.submit(headers=page)
        assert response.status_code == 202
        assert response.headers["access-control-allow-origin"] == "https://page.example"
        assert site.submit(headers=page | {"Origin": "https://evil.example"}).status_code == 403
        assert site.submit(headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403

    def test_all_origins(self, serve):
        site = serve(cors_origins=("*",))
        for origin in ("https://evil.example", "null"):
            headers = {"Origin": origin, "Sec-Fetch-Site": "cross-site"}
            assert site.submit(headers=headers).status_code == 202

    def test_with_keys_origins_are_checked(self, locked):
        key = {"Authorization": "Bearer sk-key"}
        assert locked.submit(headers=key | {"Origin": "https://evil.example"}).status_code == 403
        assert locked.submit(headers=key | {"Origin": "https://page.example"}).status_code == 202
        assert locked.submit(headers=key).status_code == 202

    @pytest.mark.parametrize(("origin", "host", "own"), HOSTS["origins"])
    def test_own_origins(self, origin, host, own):
        assert is_own(origin, [host]) is own

    def test_without_a_host_every_page_is_foreign(self):
        assert not is_own("http://localhost", [])


CROSS_SITE = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
FOLLOWED = CROSS_SITE | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


class TestTiming:
    """Pages of other sites see no answer, but how long it takes: whether a search finds something."""

    @pytest.mark.parametrize(
        ("headers", "status"),
        [
            (CROSS_SITE, 403),
            (CROSS_SITE | {"Origin": "https://evil.example"}, 403),
            (FOLLOWED | {"Sec-Fetch-Dest": "iframe"}, 403),
            (FOLLOWED, 200),
            (CROSS_SITE | {"Origin": "https://page.example"}, 200),
            (CROSS_SITE | {"Sec-Fetch-Site": "same-origin"}, 200),
            (CROSS_SITE | {"Sec-Fetch-Site": "none"}, 200),
            ({}, 200),
        ],
    )
    def test_without_keys_pages_of_other_sites_measure_no_search(self, serve, headers, status):
        site = serve(cors_origins=("https://page.example",))
        for path in ("/v1/jobs?q=secret", "/v1/jobs?q=secret&signature=x", "/v1/models"):
            assert site.client.get(path, headers=headers).status_code == status, path
        for path in ("/", "/docs", *OPEN):
            assert site.client.get(path, headers=headers).status_code == 200, path

    def test_with_keys_the_key_decides(self, locked):
        assert locked.client.get("/v1/jobs?q=x", headers=CROSS_SITE).status_code == 401
        key = {"Authorization": "Bearer sk-key"}
        assert locked.client.get("/v1/jobs?q=x", headers=CROSS_SITE | key).status_code == 200

    def test_a_login_that_browsers_remember_decides_nothing_and_a_link_does(self, serve):
        key, user = {"Authorization": "Bearer sk-key"}, {"X-User": "jane"}
        site = serve(api_keys=("sk-key",), trusted_user_header="X-User")
        job = site.submit(headers=key).json()["id"]
        assert site.client.get("/v1/jobs?q=x", headers=user).status_code == 200
        assert site.client.get("/v1/jobs?q=x", headers=CROSS_SITE | user).status_code == 403
        asked = site.client.post(f"/v1/jobs/{job}/links", json={"path": "audio"}, headers=key)
        played = site.client.get(asked.json()["path"], headers=CROSS_SITE | user)
        assert (played.status_code, played.headers["cross-origin-resource-policy"]) == (200, "cross-origin")
        assert site.client.get("/v1/jobs?signature=x", headers=CROSS_SITE | user).status_code == 403

    def test_no_other_origin_loads_an_answer(self, site):
        for path in ("/v1/models", "/nowhere", "/", "/docs", "/health", "/v1/jobs?q=x"):
            answer = site.client.get(path)
            assert answer.headers["cross-origin-resource-policy"] == "same-origin", path


def test_refusals_are_logged_now_and_then(site, monkeypatch):
    monkeypatch.setattr("app.telemetry.rare_warnings.EVERY_S", 3600.0)
    with capture_logs() as logs:
        guard = BrowserGuard(None, AllowedHosts([]), ())  # type: ignore[arg-type]
        for _ in range(50):
            guard._refused.add(reason="why")
        guard._refused._next = 0.0
        guard._refused.add(reason="why")
    warnings = [line for line in logs if line["log_level"] == "warning"]
    assert [(line["reason"], line["count"]) for line in warnings] == [("why", 1), ("why", 50)]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("Whisper.Example.org.,*", ("whisper.example.org", "*")),
        ("*.example.org:8000", ("*.example.org",)),
        (".example.org", (".example.org",)),
        ("büro.example", ("xn--bro-hoa.example",)),
        ("192.168.1.5", ("192.168.1.5",)),
    ],
)
def test_allowed_hosts_are_read(given, read):
    assert load_settings(allowed_hosts=given, _env_file=None).allowed_hosts == read


@pytest.mark.parametrize(
    "given", ["https://example.org", "example.org/", "a*.example.org", "a b", "a..b", "."]
)
def test_allowed_hosts_that_are_none(given):
    with pytest.raises(InvalidSetting, match=r"WHISPER_ALLOWED_HOSTS=.* is no host name"):
        load_settings(allowed_hosts=given, _env_file=None)
