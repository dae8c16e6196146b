"""Which hosts may be contacted: only those that are public in every spelling."""

import ipaddress
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import read_cases
from workers.addresses import AddressRefused, check_host, check_url, is_public, resolve

TABLES = read_cases("addresses")
NOT_PUBLIC = TABLES["not_public"]


@pytest.mark.parametrize("address", TABLES["public"])
def test_public_addresses(address: str) -> None:
    assert is_public(address)


def test_addresses_that_are_not_public() -> None:
    assert [address for address in NOT_PUBLIC if is_public(address)] == []


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


@pytest.mark.parametrize("url", TABLES["accepted_urls"])
def test_accepted_urls(url: str) -> None:
    check_url(url)


def test_refused_urls() -> None:
    for url in (
        *TABLES["refused_urls"],
        f"http://{'a' * 64}.example/",
        f"http://{'a.' * 130}example/",
        f"http://media.example/{'a' * 2048}",
        *(f"http://[{address}]/" if ":" in address else f"http://{address}/" for address in NOT_PUBLIC),
    ):
        with pytest.raises(AddressRefused):
            pytest.fail(f"{url} was accepted as {check_url(url)}")


def answer(*addresses: str) -> list[tuple[Any, ...]]:
    return [(0, socket.SOCK_STREAM, 6, "", (address, 80)) for address in addresses]


def test_names_are_resolved_to_all_their_addresses() -> None:
    calls = []

    def resolver(*args: Any, **kwargs: Any) -> list[tuple[Any, ...]]:
        calls.append((args, kwargs))
        return answer("93.184.215.14", "2a00:1450::1", "93.184.215.14")

    assert resolve("Media.Example", 80, resolver) == ("93.184.215.14", "2a00:1450::1")
    assert calls == [(("media.example", 80), {"type": socket.SOCK_STREAM})]


def test_one_address_that_is_not_public_refuses_the_name() -> None:
    for address in NOT_PUBLIC:
        addresses = answer("93.184.215.14", address)
        with pytest.raises(AddressRefused, match=r"media\.example leads") as refusal:
            pytest.fail(f"{resolve('media.example', 80, lambda *_, found=addresses, **__: found)}")
        assert address not in str(refusal.value).split()


def test_refused_hosts_are_not_looked_up() -> None:
    def resolver(host: str, *args: Any, **kwargs: Any) -> list[tuple[Any, ...]]:
        pytest.fail(f"{host} was looked up")

    for host in (*NOT_PUBLIC, "localhost", "2130706433", "0x7f.1", "127.1", "user@host", ""):
        with pytest.raises(AddressRefused):
            pytest.fail(f"{host} leads to {resolve(host, 80, resolver)}")


def test_literal_addresses_need_no_resolver() -> None:
    def resolver(*args: Any, **kwargs: Any) -> list[tuple[Any, ...]]:
        pytest.fail("an address was looked up")

    assert resolve("93.184.215.14", 80, resolver) == ("93.184.215.14",)


def test_a_name_without_addresses_is_a_network_error() -> None:
    with pytest.raises(OSError, match="no address"):
        resolve("media.example", 80, lambda *_, **__: [])


def test_international_names_are_looked_up_in_ascii() -> None:
    assert check_host("Müller.example") == "xn--mller-kva.example"
