"""The application does what its OpenAPI document says; the service behind it takes whatever it is given."""

import pytest

from tests.openapi_checks import KEY, check


@pytest.mark.timeout(150)
def test_what_the_document_says(serve, tmp_path):
    site = serve(api_keys=(KEY,), data_dir=tmp_path / "data")
    document = site.client.get("/openapi.json", headers={"authorization": f"Bearer {KEY}"}).json()
    said = check(site.url, document, tmp_path, "--seed=1", "--max-examples=5", "--phases=coverage,stateful")
    assert "Tested: 16" in said
    assert site.service.calls
