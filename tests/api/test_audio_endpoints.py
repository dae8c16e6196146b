"""What all endpoints that take a recording and store nothing have in common."""

import pytest

from app.common.errors import QueueFull
from app.intake.disk import MARGIN_BYTES
from tests.api.conftest import FORM, FORM_END
from tests.api.test_admission import PATHS, REQUESTS, begin, start_of_body
from tests.api.waiting import wait_for
from tests.intake.disks import SmallDisk

pytestmark = pytest.mark.parametrize("path", REQUESTS)


def post(site, path, content=b"RIFF\0", *, field=None):
    name, data = PATHS[path]
    return site.client.post(path, data=data, files={field or name: ("a.wav", content)})


def error(response):
    body = response.json()["error"]
    return response.status_code, body["code"], body["param"]


def test_a_missing_or_empty_file_is_named(site, path):
    field, _ = PATHS[path]
    assert error(post(site, path, field="other")) == (400, None, field)
    assert error(post(site, path, b"")) == (400, "empty_file", field)


def test_other_content_types_are_refused(site, path):
    for body in ({"json": {"model": "tiny"}}, {"data": {"model": "tiny"}}, {"content": b"RIFF"}):
        response = site.client.post(path, **body)
        assert response.status_code == 415
        assert "multipart/form-data" in response.json()["error"]["message"]


def test_errors_leave_no_file(site, path):
    site.service.error = QueueFull("wait")
    assert error(post(site, path)) == (429, "queue_full", None)
    assert not site.uploads


def test_the_size_is_limited(serve, path):
    site = serve(max_upload_mb=1)
    refused = post(site, path, bytes(5_000_000))
    assert refused.status_code == 413
    assert "1 MB" in refused.json()["error"]["message"]
    assert not site.uploads
    assert post(site, path, bytes(1_000_000)).status_code == 200


def test_the_disk_must_have_space(site, monkeypatch, path):
    SmallDisk(monkeypatch, site.service.settings.data_dir, MARGIN_BYTES + 1_000_000)
    assert post(site, path, bytes(2_000_000)).status_code == 507
    assert post(site, path, bytes(500_000)).status_code == 200


def test_a_disconnect_ends_the_work(site, path):
    site.service.paused = True
    with site.begin(f"POST {path}", start_of_body(path) + FORM_END, **FORM):
        assert site.service.started.wait(5)
        assert not site.service.cancelled.is_set()
    assert site.service.cancelled.wait(5)
    wait_for(lambda: not site.uploads)


def test_a_disconnect_during_the_upload_leaves_no_file(site, path):
    begin(site, path).close()
    wait_for(lambda: not site.uploads)
    assert not site.service.calls
