"""The guide to HTTP lists every path of the service."""

from tests.pages import ROOT


def test_the_guide_lists_every_path(site):
    guide = (ROOT / "docs/http.md").read_text(encoding="utf-8")
    listed = guide.partition("## All paths\n")[2].partition("\n## ")[0]
    paths = site.client.get("/openapi.json").json()["paths"]
    assert len(paths) > 20
    for path in paths:
        last = [part for part in path.split("/") if part and not part.startswith("{")][-1]
        assert f"/{last}" in listed, path
