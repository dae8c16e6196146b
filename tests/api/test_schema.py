"""The application conforms to its OpenAPI document. The fake service accepts every request."""

import pytest

from tests.openapi_checks import KEY, check, operations


@pytest.mark.timeout(150)
@pytest.mark.parametrize("phases", ["coverage", pytest.param("coverage,stateful", marks=pytest.mark.soak)])
@pytest.mark.server
def test_service_conforms_to_its_openapi_document(serve, tmp_path, phases):
    site = serve(api_keys=(KEY,), data_dir=tmp_path / "data")
    document = site.client.get("/openapi.json", headers={"authorization": f"Bearer {KEY}"}).json()
    count = operations(document)
    output = check(site.url, document, tmp_path, "--seed=1", "--max-examples=5", f"--phases={phases}")
    assert f"Tested: {count}" in output
    assert site.service.calls
