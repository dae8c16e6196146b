"""Which hosts may be contacted: only those that are public in every spelling."""

import ipaddress
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.addresses import AddressRefused, check_host, check_url, is_public, resolve

PUBLIC = ["93.184.215.14", "8.8.8.8", "1.1.1.1", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "2a00:1450::1"]
NOT_PUBLIC = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",  # IPv4-compatible
    "::ffff:10.0.0.1",  # IPv4-mapped
    "::ffff:8.8.8.8",
    "::ffff:0:10.0.0.1",  # IPv4-translated
    "64:ff9b::10.0.0.1",  # NAT64
    "64:ff9b::169.254.169.254",
    "64:ff9b:1::10.0.0.1",  # NAT64, local
    "100::1",  # discard-only
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",  # Teredo
    "2001:2::1",
    "2001:10::1",
    "2001:db8::1",
    "2002:0a00:0001::1",  # 6to4 of 10.0.0.1
    "2002:0808:0808::1",
    "3ffe::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "2606:4700::1%eth0",
    "fec0::1",  # site-local
    "ff02::1",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


def test_nat64_is_as_public_as_the_embedded_address() -> None:
    assert is_public("64:ff9b::8.8.8.8")


@pytest.mark.parametrize(
    "text", ["", "example.com", "1.2.3", "01.2.3.4", " 8.8.8.8", "8.8.8.8\n", "８.8.8.8"]
)
def test_text_that_is_not_an_address_is_not_public(text: str) -> None:
    assert not is_public(text)


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_no_special_address_of_python_is_public(address: Any) -> None:
    special = (
        not address.is_global
        or address.is_multicast
        or address.is_reserved
        or address.is_private
        or address.is_loopback
        or address.is_link_local
    )
    if special and address not in ipaddress.ip_network("64:ff9b::/96" if address.version == 6 else "::/128"):
        assert not is_public(str(address))


@pytest.mark.parametrize(
    "url",
    [
        "http://media.example/talk.mp3",
        "HTTPS://Media.Example:8443/a?b=c#d",
        "https://93.184.215.14/talk.mp3",
        "http://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:81/",
        "https://müller.example/",
        "https://a_b.media-1.example",
        "https://3com.example/",
        "https://example.com/@user/talk",
    ],
)
def test_accepted_urls(url: str) -> None:
    check_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "talk.mp3",
        "//media.example/talk.mp3",
        "file:///etc/passwd",
        "ftp://media.example/talk.mp3",
        "data:audio/wav;base64,AAAA",
        "ytsearch:talk",
        "javascript:alert(1)",
        "http:",
        "http://",
        "http:///talk.mp3",
        "http://:80/",
        "http://media.example:0/",
        "http://media.example:99999/",
        "http://media.example:x/",
        "http://[::1",
        "http://user@media.example/",
        "http://user:secret@media.example/",
        "http://media.example@127.0.0.1/",
        "http://media.example\\@127.0.0.1/",
        "http://media.example /",
        "http://media.\nexample/",
        "\thttp://media.example/",
        "http://127.0.0.1/",
        "http://127.0.0.1./",
        "http://127.1/",
        "http://2130706433/",
        "http://017700000001/",
        "http://0177.0.0.1/",
        "http://0x7f.1/",
        "http://0x7f000001/",
        "http://0X7F000001/",
        "http://0/",
        "http://134744072/",  # 8.8.8.8 is public, but this spelling is suspicious
        "http://1.2.3.4.5/",
        "http://①②⑦.⓪.⓪.①/",
        "http://127。0。0。1/",
        "http://%31%32%37.0.0.1/",
        "http://localhost/",
        "http://LOCALHOST:8000/",
        "http://localhost./",
        "http://talk.localhost/",
        "http://media.example./",
        "http://media..example/",
        "http://.example/",
        "http://-media.example/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[fe80::1%25eth0]/",
        "http://[fe80::1%eth0]/",
        "http://[v1.fe80::1]/",
        f"http://{'a' * 64}.example/",
        f"http://{'a.' * 130}example/",
        f"http://media.example/{'a' * 2048}",
        *(f"http://[{address}]/" if ":" in address else f"http://{address}/" for address in NOT_PUBLIC),
    ],
)
def test_refused_urls(url: str) -> None:
    with pytest.raises(AddressRefused):
        check_url(url)


def answer(*addresses: str) -> list[tuple[Any, ...]]:
    return [(0, socket.SOCK_STREAM, 6, "", (address, 80)) for address in addresses]


def test_names_are_resolved_to_all_their_addresses() -> None:
    calls = []

    def resolver(*args: Any, **kwargs: Any) -> list[tuple[Any, ...]]:
        calls.append((args, kwargs))
        return answer("93.184.215.14", "2a00:1450::1", "93.184.215.14")

    assert resolve("Media.Example", 80, resolver) == ("93.184.215.14", "2a00:1450::1")
    assert calls == [(("media.example", 80), {"type": socket.SOCK_STREAM})]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_one_address_that_is_not_public_refuses_the_name(address: str) -> None:
    with pytest.raises(AddressRefused, match=r"media\.example leads") as refusal:
        resolve("media.example", 80, lambda *_, **__: answer("93.184.215.14", address))
    assert address not in str(refusal.value).split()


@pytest.mark.parametrize("host", [*NOT_PUBLIC, "localhost", "2130706433", "0x7f.1", "127.1", "user@host", ""])
def test_refused_hosts_are_not_looked_up(host: str) -> None:
    def resolver(*args: Any, **kwargs: Any) -> list[tuple[Any, ...]]:
        pytest.fail(f"{host} was looked up")

    with pytest.raises(AddressRefused):
        resolve(host, 80, resolver)


def test_literal_addresses_need_no_resolver() -> None:
    def resolver(*args: Any, **kwargs: Any) -> list[tuple[Any, ...]]:
        pytest.fail("an address was looked up")

    assert resolve("93.184.215.14", 80, resolver) == ("93.184.215.14",)


def test_a_name_without_addresses_is_a_network_error() -> None:
    with pytest.raises(OSError, match="no address"):
        resolve("media.example", 80, lambda *_, **__: [])


def test_international_names_are_looked_up_in_ascii() -> None:
    assert check_host("Müller.example") == "xn--mller-kva.example"
