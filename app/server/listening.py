"""Addresses to listen on: whether this process can, and how many connections it can have there."""

import errno
import resource
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.common.errors import InvalidSetting
from app.common.known_errors import GUIDE
from app.common.owners import KeyRing
from app.settings import COMMANDS_KEY, Settings
from workers.addresses import parsed_address

MAX_CONNECTIONS = 4096  # if the settings name no number
PATIENT = "patient"  # in the state of a request whose response costs nothing but its connection
STREAM_PATH = "/v1/realtime"  # of WebSockets: their handshake is a GET
SPARE_DESCRIPTORS = 256  # for the database, the workers and libraries
GRACE_S = 3  # requests and streams in flight have so long to end once the service stops
DRAIN_S = 60.0  # requests, if it drains before
QUEUE = 4096  # connections that the kernel has for the server, if the machine allows so many


@dataclass(frozen=True, slots=True)
class AddressFault:
    """Why it cannot, and what to do about it."""

    message: str
    remedy: str
    in_use: bool  # by another program


def service_faults(settings: Settings) -> Iterator[AddressFault]:
    """Why the service cannot listen on its addresses, for each of which it cannot."""
    addresses = {"WHISPER_PORT": (settings.host, settings.port)}
    if settings.wyoming_address is not None:
        addresses["WHISPER_WYOMING_PORT"] = settings.wyoming_address
    for setting, address in addresses.items():
        if (fault := address_fault(*address, setting)) is not None:
            yield fault


def address_fault(host: str, port: int, setting: str = "WHISPER_PORT") -> AddressFault | None:
    """Why nothing can listen on an address; None if something can. `setting`: what names its port."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        found = [_bind_error(*address) for address in addresses]
    except OSError as error:
        found = [error]
    except UnicodeError:  # such as a name with a part of more than 63 characters
        found = [OSError("no name of a machine")]
    errors = [error for error in found if error is not None]
    if any(error.errno == errno.EADDRINUSE for error in errors):
        remedy = (
            f"`ss -ltnp` names the program, perhaps another whisperfleet. Stop it, or set {setting}. "
            f"({GUIDE}#port-in-use)"
        )
        return AddressFault(f"port {port} is in use on {host}", remedy, in_use=True)
    if errors and len(errors) == len(found):
        names = "WHISPER_HOST to an address of this machine, and WHISPER_PORT to a port above 1023"
        if setting != "WHISPER_PORT":
            names = f"{setting} to a port above 1023, after an address of this machine"
        remedy = f"Set {names}."
        return AddressFault(f"{host} port {port}: {errors[0].strerror or errors[0]}", remedy, in_use=False)
    return None


def check_key_of_commands(settings: Settings, environ: Mapping[str, str]) -> None:
    """Raise InvalidSetting if only commands have a key, and others could reach the service without one."""
    if environ.get(COMMANDS_KEY) and not settings.needs_key and not _is_loopback(settings.host):
        raise InvalidSetting(
            f"{COMMANDS_KEY} is the key that commands send: the service asks for none, and WHISPER_HOST="
            f"{settings.host} opens it to others. Set WHISPER_API_KEYS, which the service asks for, or unset "
            f"{COMMANDS_KEY}."
        )


def key_warnings(settings: Settings, keys: KeyRing) -> list[str]:
    """A sentence for each way in which strangers could get in: no key on an open address, guessable ones."""
    if not settings.needs_key and not _is_loopback(settings.host):
        fault = f"WHISPER_HOST={settings.host} opens the service to others, and it asks for no key"
        return [f"{fault}: set WHISPER_API_KEYS, unless a container or a firewall keeps them out."]
    remedy = "others may guess it. Make one with `openssl rand -hex 32`."
    return [f"The key of {owner} is short or common: {remedy}" for owner in keys.guessable()]


def _is_loopback(host: str) -> bool:
    address = parsed_address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def _bind_error(
    family: int, kind: int, protocol: int, _: str, address: tuple[str | int, ...] | tuple[int, bytes]
) -> OSError | None:
    """The error of listening on an address, as `getaddrinfo` describes it."""
    try:
        _bound(family, kind, protocol, "", address).close()
    except OSError as error:
        return error
    return None


def listeners(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen on all addresses of a host. Raises OSError."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    found = [_bound(*address) for address in dict.fromkeys(addresses)]
    for listener in found:
        listener.listen(QUEUE)
    return found


def _bound(
    family: int, kind: int, protocol: int, _: str, address: tuple[str | int, ...] | tuple[int, bytes]
) -> socket.socket:
    """A socket with an address, as `getaddrinfo` describes it. Raises OSError."""
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
    except BaseException:
        listener.close()
        raise
    return listener


def max_connections(settings: Settings) -> int:
    """How many connections there may be: no more than this process can have descriptors for."""
    return max(1, (_descriptors(settings) - SPARE_DESCRIPTORS) // 2)


def wanted_connections(settings: Settings) -> int:
    """How many connections this process may have if the limit of descriptors allows it."""
    return max(1, (settings.max_connections or MAX_CONNECTIONS) // settings.processes)


def raise_descriptor_limit(settings: Settings) -> None:
    """Raise the soft limit of descriptors to what the service needs, if it is lower."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _descriptors(settings)
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _descriptors(settings: Settings) -> int:
    """Those of all connections with a file for each, and of the rest: at most the hard limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * wanted_connections(settings) + SPARE_DESCRIPTORS
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
