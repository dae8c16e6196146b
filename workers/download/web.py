"""HTTP for yt-dlp: its own handler, with a network that checks each address before it connects."""

import http.client
import io
import socket
import urllib.request
import zlib
from functools import partial
from typing import Any
from urllib.parse import urljoin, urlsplit
from urllib.response import addinfourl

from yt_dlp.networking._urllib import HTTPHandler, RedirectHandler, UrllibRH

from workers.addresses import AddressRefused, Connect, Resolver, resolve

MAX_ADDRESSES = 4  # to try of one host
MAX_PAGE_BYTES = 32 << 20  # of a page or manifest, which is read into memory

_WBITS = {"gzip": 31, "deflate": 15}


class PublicNetwork:
    """Makes all connections: resolves the name, checks the addresses, and connects to one of them."""

    def __init__(self, resolver: Resolver, connect: Connect) -> None:
        self.refusal: AddressRefused | None = None  # kept here, because yt-dlp may wrap or hide it
        self._resolver = resolver
        self._connect = connect

    def open(self, address: tuple[str, int], timeout: float | None = None, *_: object) -> socket.socket:
        """Connect to a host, as `socket.create_connection` does. Raises AddressRefused and OSError."""
        host, port = address
        try:
            addresses = resolve(host, port, self._resolver)
        except AddressRefused as refusal:
            self.refusal = refusal
            raise
        failure: OSError | None = None
        for resolved in addresses[:MAX_ADDRESSES]:
            try:
                return self._connect((resolved, port), timeout)
            except OSError as error:
                failure = error
        raise failure or OSError(f"{host} has no address")

    def check_scheme(self, url: str) -> None:
        """Raise AddressRefused for a URL that is not HTTP: yt-dlp also opens files, FTP and `data:`."""
        if urlsplit(url).scheme.lower() not in ("http", "https"):
            self.refusal = AddressRefused("The URL leads to something that is neither http:// nor https://.")
            raise self.refusal


class WebRH(UrllibRH):  # type: ignore[misc]
    """Sends requests over HTTP and HTTPS only, without proxies, and limits the size of pages.

    `network` makes all connections, also those after redirects.
    """

    _SUPPORTED_URL_SCHEMES = ("http", "https")
    _SUPPORTED_PROXY_SCHEMES = ()

    def __init__(self, network: PublicNetwork, **options: Any) -> None:
        super().__init__(**options)
        self._network = network

    def _create_instance(self, proxies: Any, cookiejar: Any, legacy_ssl_support: Any = None) -> Any:
        opener = urllib.request.OpenerDirector()
        for handler in (
            _HTTP(self._network, self._make_sslcontext(legacy_ssl_support=legacy_ssl_support)),
            urllib.request.HTTPCookieProcessor(cookiejar),
            urllib.request.UnknownHandler(),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
            _Redirects(self._network),
        ):
            opener.add_handler(handler)
        opener.addheaders = []
        return opener

    def _prepare_headers(self, _: Any, headers: Any) -> None:
        if "Accept-Encoding" not in headers:
            headers["Accept-Encoding"] = ", ".join(_WBITS)


class _HTTP(HTTPHandler):  # type: ignore[misc]
    def __init__(self, network: PublicNetwork, context: Any) -> None:
        super().__init__(context=context)
        self._network = network

    def http_open(self, request: Any) -> Any:
        return self.do_open(partial(self._connection, http.client.HTTPConnection), request)

    def https_open(self, request: Any) -> Any:
        connection = partial(self._connection, http.client.HTTPSConnection)
        return self.do_open(connection, request, context=self._context)

    def _connection(self, kind: Any, *args: Any, **options: Any) -> Any:
        connection = kind(*args, **options)
        connection._create_connection = self._network.open
        connection.response_class = _Response
        return connection

    def http_response(self, request: Any, response: Any) -> Any:
        """Undo the Content-Encoding. Raises OSError if the result is over `MAX_PAGE_BYTES`."""
        codings = [
            coding
            for coding in response.headers.get("Content-Encoding", "").lower().replace(" ", "").split(",")
            if coding not in ("", "identity")
        ]
        if not codings:
            return response
        if len(codings) > 1 or codings[0] not in _WBITS:
            raise OSError("the site compresses in a way that is not supported here")
        plain = _inflate(response.read(), _WBITS[codings[0]])
        decoded: Any = addinfourl(io.BytesIO(plain), response.headers, response.url, response.code)
        decoded.msg = response.msg
        return decoded

    https_response = http_response


class _Redirects(RedirectHandler):  # type: ignore[misc]
    def __init__(self, network: PublicNetwork) -> None:
        self._network = network

    def http_error_302(self, request: Any, response: Any, code: Any, message: Any, headers: Any) -> Any:
        if location := headers.get("Location") or headers.get("URI"):
            self._network.check_scheme(urljoin(request.full_url, location))
        return super().http_error_302(request, response, code, message, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


class _Response(http.client.HTTPResponse):
    """A response that limits a read of everything to `MAX_PAGE_BYTES`."""

    def read(self, amt: int | None = None) -> bytes:
        if amt is not None:
            return super().read(amt)
        if self.length is not None and self.length <= MAX_PAGE_BYTES:
            return super().read()
        body = super().read(MAX_PAGE_BYTES + 1)
        if len(body) > MAX_PAGE_BYTES:
            self.close()
            raise _page_too_large()
        return body


def _inflate(body: bytes, wbits: int) -> bytes:
    """Undo gzip or deflate; servers disagree on whether the latter has a header. Raises OSError."""
    for bits in (wbits, -15):
        decompressor = zlib.decompressobj(bits)
        try:
            plain = decompressor.decompress(body, MAX_PAGE_BYTES)
        except zlib.error:
            continue
        if decompressor.unconsumed_tail:
            raise _page_too_large()
        return plain
    raise OSError("the site's answer is damaged")


def _page_too_large() -> OSError:
    return OSError(f"the site sends a page of more than {MAX_PAGE_BYTES >> 20} MiB")
