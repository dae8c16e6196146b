"""The address of a service, and what its answers say."""

import httpx
import pytest

from app.errors import InvalidInput
from app.service_answers import error_code, error_message, public_name, retry_after_s, service_url


@pytest.mark.parametrize(
    ("server", "url"),
    [
        ("http://host:8000", "http://host:8000/"),
        ("http://host:8000/", "http://host:8000/"),
        ("http://host:8000/v1", "http://host:8000/"),
        ("http://host:8000/v1/", "http://host:8000/"),
        ("host:8000", "http://host:8000/"),
        ("host", "http://host/"),
        ("[::1]:8000/v1", "http://[::1]:8000/"),
        ("https://example.org/whisper", "https://example.org/whisper/"),
        ("https://example.org/whisper/v1?x=1#top", "https://example.org/whisper/"),
    ],
)
def test_addresses_as_users_have_them(server: str, url: str) -> None:
    assert str(service_url(server)) == url


@pytest.mark.parametrize("server", ["", "ftp://host", "http://", "http://host:port", "http://[::1"])
def test_what_is_no_address(server: str) -> None:
    with pytest.raises(InvalidInput, match="is no address"):
        service_url(server)


def test_a_password_is_not_shown() -> None:
    assert public_name(service_url("http://me:secret@host:8000")) == "http://host:8000/"


@pytest.mark.parametrize(
    ("answer", "message", "code"),
    [
        (httpx.Response(400, json={"error": {"message": "No.", "code": "not_audio"}}), "No.", "not_audio"),
        (httpx.Response(502, text="<html>"), "the server answered 502 Bad Gateway", ""),
        (httpx.Response(500, json={"error": "broken"}), "the server answered 500 Internal Server Error", ""),
        (httpx.Response(500, json=["error"]), "the server answered 500 Internal Server Error", ""),
    ],
)
def test_errors_of_services_and_proxies(answer: httpx.Response, message: str, code: str) -> None:
    assert (error_message(answer), error_code(answer)) == (message, code)


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("86400", 60.0), ("tomorrow", 0.0), ("-1", 0.0)])
def test_how_long_to_wait(header: str, seconds: float) -> None:
    assert retry_after_s(httpx.Response(429, headers={"retry-after": header})) == seconds
