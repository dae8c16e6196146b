"""The real service does what its OpenAPI document says: no crash, and no undocumented answer."""

import sqlite3
from contextlib import closing

import pytest

from app.database.connection import FILE_NAME
from tests.openapi_checks import KEY, check, operations


def checked(commands, folder, *arguments: object) -> None:
    """Check that schemathesis finds no fault in a server, and that no files stay."""
    server = commands.ready(key=KEY, WHISPER_API_KEYS=KEY, WHISPER_LOG_LEVEL="error")
    document = server.client.get("/openapi.json").json()
    count = operations(document)
    assert f"Tested: {count}" in check(server.url, document, folder, *arguments)
    assert [row["restarts"] for row in server.workers()] == [0, 0]
    while jobs := server.client.get("/v1/jobs").json()["data"]:
        for job in jobs:
            server.client.delete(f"/v1/jobs/{job['id']}").raise_for_status()
    with closing(sqlite3.connect(server.data / FILE_NAME)) as database:
        uploads = database.execute("SELECT id FROM uploads").fetchall()
    for (upload_id,) in uploads:
        server.client.delete(
            f"/v1/uploads/{upload_id}", headers={"Tus-Resumable": "1.0.0"}
        ).raise_for_status()
    assert not server.left_files()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_requests_of_every_kind(commands, tmp_path):
    checked(commands, tmp_path, "--max-examples=300")
