"""The application conforms to its OpenAPI document. The fake service accepts every request."""

import pytest

from tests.openapi_checks import KEY, check, operations

# They have the options of `/v1/jobs/{id}/again`, and take six times as long each.
SAME_OPTIONS = ("/v1/jobs", "/v1/audio/transcriptions", "/v1/audio/translations", "/asr")


@pytest.mark.timeout(150)
@pytest.mark.parametrize(
    ("phases", "left_out"),
    [("coverage", SAME_OPTIONS), pytest.param("coverage,stateful", (), marks=pytest.mark.soak)],
)
@pytest.mark.server
def test_service_conforms_to_its_openapi_document(serve, tmp_path, phases, left_out):
    site = serve(api_keys=(KEY,), data_dir=tmp_path / "data")
    document = site.client.get("/openapi.json", headers={"authorization": f"Bearer {KEY}"}).json()
    count = operations(document) - len(left_out)
    excluded = [f"--exclude-name=POST {path}" for path in left_out]
    output = check(
        site.url, document, tmp_path, "--seed=1", "--max-examples=5", f"--phases={phases}", *excluded
    )
    assert f"Tested: {count}" in output
    assert site.service.calls
