"""The page at `/`, its files, and the documentation."""

import contextlib
import gzip
import http.client
import json
import mimetypes
import re

import pytest

from app.api.page.pages import WEB, json_in_html
from app.common.options import Options
from tests.cases import read_cases

REQUESTS = read_cases("requests")

KEY = "sk-first"
DATA = re.compile(r'<script type="application/json" id="service">(.*?)</script>', re.DOTALL)


def raw_get(site, path):
    """The status of a path that no client has normalized."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", site.port, timeout=10)) as connection:
        connection.request("GET", path)
        return connection.getresponse().status


def sources(policy):
    return {words[0]: words[1:] for words in map(str.split, policy.split(";"))}


def test_pages_allow_only_their_own_files(site):
    for path in ("/", "/docs"):
        headers = site.client.get(path).headers
        policy = sources(headers["content-security-policy"])
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == ["'none'"]
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == ["'self'"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["cross-origin-opener-policy"] == "same-origin"
        for name in ("microphone", "display-capture"):
            assert f"{name}=(self)" in headers["permissions-policy"]
    for path in ("/", "/docs", "/web/main.js", "/docs/assets/swagger-ui.css"):
        headers = site.client.get(path).headers
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == "no-cache"


def test_pages_have_no_inline_script_or_style(site):
    for path in ("/", "/docs"):
        text = DATA.sub("", site.client.get(path).text)
        assert not re.search(r"<script(?![^>]*\ssrc=)", text)
        assert not re.search(r"<style|\sstyle=|\son\w+=", text)


@pytest.mark.parametrize("path", ["/", "/web/main.js", "/docs", "/docs/assets/swagger-ui.css"])
def test_head(site, path):
    got, head = site.client.get(path), site.client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == got.headers["content-length"]
    assert site.client.post(path).status_code == 405


def test_the_page_knows_the_service(serve):
    site = serve(api_keys=(KEY,), allow_urls=True, max_upload_mb=12, model_aliases=("a", "b=tiny"))
    [text] = DATA.findall(site.client.get("/").text)
    data = json.loads(text)
    assert data["version"] == site.client.get("/health").json()["version"]
    assert (data["keys"], data["urls"], data["max_upload_mb"]) == (True, True, 12)
    assert data["aliases"] == ["whisper-1", "a", "b"]
    assert data["languages"]["de"] == "german"
    assert {"srt", "vtt", "txt", "json"} <= set(data["formats"])
    assert data["options"] == Options().model_dump(mode="json")
    assert KEY not in site.client.get("/").text


def test_no_value_ends_the_data():
    value = {"</script><script>alert(1)//": ["<!--<script>", "&lt;", "\u2028", "ü"]}
    text = json_in_html(value)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == value


def test_the_page_needs_no_key(serve):
    site = serve(api_keys=(KEY,))
    names = re.findall(r'(?:src|href)="(web/[^"]+)"', site.client.get("/").text)
    assert {"web/bundle/main.js", "web/bundle/page.css", "web/icon.svg"} <= set(names)
    for name in names:
        assert site.client.get(f"/{name}").status_code == 200, name
    for path in ("/web/../v1/models", "/web/%2e%2e/v1/models", "/web", "//", "/webs", "/web//v1/models"):
        assert raw_get(site, path) in (307, 401, 404), path


def test_a_file_is_sent_again_only_when_it_has_changed(site):
    first = site.client.get("/web/main.js")
    etag = first.headers["etag"]
    again = site.client.get("/web/main.js", headers={"If-None-Match": f'"x", W/{etag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    assert again.headers["cache-control"] == "no-cache"
    other = site.client.get("/web/main.js", headers={"If-None-Match": '"x"'})
    assert (other.status_code, other.content) == (200, first.content)


def test_files_are_compressed_for_clients_that_want_it(site):
    plain = site.client.get("/web/vendor/ui.js", headers={"Accept-Encoding": "identity"})
    packed = site.client.get("/web/vendor/ui.js", headers={"Accept-Encoding": "gzip, br"})
    assert plain.content == packed.content == (WEB / "vendor" / "ui.js").read_bytes()
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content) / 2
    assert plain.headers["etag"] != packed.headers["etag"]
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"
    refused = site.client.get("/web/vendor/ui.js", headers={"Accept-Encoding": "gzip;q=0, identity"})
    assert "content-encoding" not in refused.headers


def test_types_do_not_depend_on_the_machine(site, monkeypatch):
    monkeypatch.setattr(mimetypes, "guess_type", lambda *_, **__: ("text/plain", None))
    types = {
        name: site.client.get(f"/web/{name}").headers["content-type"] for name in ("main.js", "icon.svg")
    }
    assert types == {"main.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}
    assert site.client.get("/web/styles/base.css").headers["content-type"] == "text/css; charset=utf-8"


@pytest.mark.parametrize("path", REQUESTS["no_pages"])
def test_no_other_file_is_served(site, path):
    assert raw_get(site, path) == 404
    assert site.client.get("/web/nothing.js").json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("language", ["en", "de", "es"])
def test_the_page_is_small(site, language):
    """At most 140 kB on the way to a browser: the page, its packages and its texts."""
    html = site.client.get("/", headers={"Accept-Encoding": "identity"}).content
    names = re.findall(r'(?:src|href)="(web/[^"]+)"', html.decode())
    assert {"web/bundle/main.js", "web/bundle/page.css"} <= set(names)
    names.append(f"web/texts/{language}.js")
    files = [site.client.get(f"/{name}").raise_for_status().content for name in names]
    assert sum(len(gzip.compress(content)) for content in [html, *files]) <= 140_000
