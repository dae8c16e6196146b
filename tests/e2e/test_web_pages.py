"""Web pages of other sites and ordinary clients, against the real service."""

import pytest

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/workers", "/docs", "/openapi.json"])
def test_a_page_cannot_read_by_dns_rebinding(server, path):
    refused = server.client.get(path, headers={"Host": f"rebound.evil.example:{server.port}"})
    assert refused.status_code == 421
    assert "WHISPER_ALLOWED_HOSTS=rebound.evil.example" in refused.json()["error"]["message"]
    assert refused.headers["x-request-id"]


def test_a_page_cannot_hand_in_a_job(server, shorts):
    jobs = server.client.get("/v1/jobs").json()["data"]
    clips, files = [row["clips"] for row in server.workers()], server.left_files()
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        form = {"files": {"file": ("talk.flac", shorts[0].read_bytes())}, "headers": headers}
        assert server.client.post("/v1/jobs", **form).status_code == 403
        assert server.client.post("/asr", files={"audio_file": b"x"}, headers=headers).status_code == 403
        assert server.post(shorts[0], headers=headers).status_code == 403
    assert server.client.get("/v1/jobs").json()["data"] == jobs
    assert [row["clips"] for row in server.workers()] == clips
    assert server.left_files() == files


def test_clients_in_containers_and_clusters(server, shorts):
    bazarr = {"Host": "whisperfleet:8000"}
    sent = server.client.post(
        "/asr",
        params={"output": "srt"},
        files={"audio_file": ("audio_file", shorts[0].read_bytes())},
        headers=bazarr,
    )
    assert (sent.status_code, "-->" in sent.text) == (200, True)
    for path in ("/health", "/ready"):
        for host in ("10.42.0.17:8000", "whisperfleet.media.svc:8000"):  # Kubernetes, load balancers
            assert server.client.get(path, headers={"Host": host}).status_code == 200
    assert server.client.get("/v1/workers", headers={"Host": "10.42.0.17:8000"}).status_code == 200
