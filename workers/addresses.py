"""Which hosts the service may contact on a client's behalf: only globally routable unicast addresses.

Both the front end and the workers use this module, so it is pure and needs the standard library alone. The
lists are IANA's registries of special-purpose addresses. They are written out because `ipaddress.is_global`
differs between versions of Python, and because it calls a few addresses global that lead to private networks.
"""

import ipaddress
import re
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MAX_URL_CHARS = 2048

# Has the signature and the results of `socket.getaddrinfo`.
Resolver = Callable[..., Sequence[tuple[Any, ...]]]
# Has the signature of `socket.create_connection`; the address is resolved already.
Connect = Callable[[tuple[str, int], float | None], socket.socket]

_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")  # the only block with assigned addresses
_REFUSED = tuple(
    ipaddress.ip_network(block)
    for line in Path(__file__).with_name("refused_networks.txt").read_text("utf-8").splitlines()
    if (block := line.partition("#")[0].strip())
)
# Machines with IPv6 only reach IPv4 hosts through NAT64: the embedded IPv4 address decides.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

_NAME = re.compile(
    r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*"
)
# As in browsers, a host whose last label looks like a number is an IPv4 address: resolvers read 2130706433,
# 0x7f.1 and 127.1 as 127.0.0.1.
_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
_FORBIDDEN_IN_URL = re.compile(r"[\x00-\x20\x7f\\]")


class AddressRefused(ValueError):
    """A URL, host or address that the service does not contact on a client's behalf."""


def parsed_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address that a text is, in its plain spelling; None for any other text."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def is_public(address: str) -> bool:
    """Whether an IP address, in its plain spelling, is globally routable unicast."""
    parsed = parsed_address(address)
    if parsed is None or "%" in address:
        return False  # a zone: an address in one network of this machine
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed in _NAT64:
            return is_public(str(ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)))
        if parsed not in _UNICAST_V6:
            return False
    return not any(parsed in block for block in _REFUSED)


def check_url(url: str) -> tuple[str, int]:
    """The host and port of a plain http or https URL whose host may be contacted.

    Raises AddressRefused otherwise. Does not resolve names: `resolve` does, for each connection.
    """
    host, port = split_url(url)
    return check_host(host), port


def split_url(url: str) -> tuple[str, int]:
    """The host and port of a plain http or https URL, whatever the host. Raises AddressRefused otherwise."""
    if len(url) > MAX_URL_CHARS:
        raise AddressRefused(f"The URL is longer than {MAX_URL_CHARS} characters.")
    # Other parsers skip or replace such characters, and would see another host than we do.
    if _FORBIDDEN_IN_URL.search(url):
        raise AddressRefused("The URL has spaces, control characters or backslashes in it.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise AddressRefused("The URL is malformed.") from None
    if parts.scheme not in ("http", "https"):
        raise AddressRefused("Only http:// and https:// URLs are accepted.")
    if "@" in parts.netloc:
        raise AddressRefused("The URL must not hold a user name or password.")
    if not host:
        raise AddressRefused("The URL names no host.")
    if port is None:
        port = 443 if parts.scheme == "https" else 80
    if port == 0:
        raise AddressRefused("The URL is malformed.")
    return host, port


def check_host(host: str) -> str:
    """The host in the spelling to resolve: a public address, or a name in ASCII and lower case.

    Raises AddressRefused for other addresses, local names, and numbers that resolvers read as addresses.
    """
    if ":" in host:
        return _public(host)
    try:
        name = host.lower() if host.isascii() else host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        raise AddressRefused("The URL's host name is malformed.") from None
    if _NUMBER.fullmatch(name.rstrip(".")):
        return _public(name)
    if not _NAME.fullmatch(name):
        raise AddressRefused("The URL's host name is malformed.")
    if name == "localhost" or name.endswith(".localhost"):
        raise AddressRefused(f"{name} is this machine itself, which is not contacted for clients.")
    return name


def resolve(host: str, port: int, resolver: Resolver = socket.getaddrinfo) -> tuple[str, ...]:
    """The IP addresses of a host. Call it for every connection, and connect to one of these addresses.

    Raises AddressRefused if any of them may not be contacted, and OSError if the name is not found.
    """
    name = check_host(host)
    if is_public(name):
        return (name,)
    addresses = look_up(name, port, resolver)
    # The message does not name the address: clients could map the private network with it.
    if not all(map(is_public, addresses)):
        raise AddressRefused(f"{name} leads to an address that is not on the public internet.")
    return addresses


def look_up(host: str, port: int, resolver: Resolver = socket.getaddrinfo) -> tuple[str, ...]:
    """The IP addresses of a host, public or not. Raises OSError if the name is not found."""
    answers = resolver(host, port, type=socket.SOCK_STREAM)
    addresses = tuple(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in answers))
    if not addresses:
        raise OSError(f"{host} has no address")
    return addresses


def _public(address: str) -> str:
    if not is_public(address):
        raise AddressRefused("The URL's address is not on the public internet, or not in its plain spelling.")
    return address
