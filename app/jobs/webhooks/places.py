"""Limits of webhooks in flight, by owner and receiver: a slow or dead receiver delays no others. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence

MAX_IN_FLIGHT = 32
_LIMITS = {
    "owner": 8,
    "host": 4,  # of an owner, by the name in the URL: before it is resolved
    "own address": 4,  # of an owner: a host may have many names
    "address": 8,  # of all owners
    # To receivers whose last try failed: a try may take all of its timeout, and half of all places are left.
    "own failing": 4,  # of an owner
    "failing": 16,  # of all owners
}
_MOST_KEPT = 100  # names that are busy, and those that fail

Place = tuple[str, ...]  # the name of its limit, and what that counts
Host = tuple[str, str]  # the owner of a delivery, and the name of its receiver


class Places:
    """Counts the places that are taken."""

    def __init__(self) -> None:
        self._taken: Counter[Place] = Counter()
        self._busy: dict[Host, Sequence[Place]] = {}  # names that lead to addresses without a free place
        self._failing: dict[Host, None] = {}  # whose last try failed, the latest last

    def of(self, host: Host) -> list[Place]:
        """The places that a delivery to a host has from its beginning."""
        failing: list[Place] = [("own failing", host[0]), ("failing",)] if host in self._failing else []
        return [("owner", host[0]), ("host", *host), *failing]

    def tried(self, host: Host, *, failed: bool) -> None:
        """A try to deliver to a host has ended. While its last one `failed`, the host has fewer places."""
        self._failing.pop(host, None)
        if failed:
            self._failing[host] = None
            if len(self._failing) > _MOST_KEPT:
                del self._failing[next(iter(self._failing))]

    def take(self, places: Sequence[Place]) -> bool:
        """Take all of these places if they are free. Returns whether they were."""
        if self._is_one_full(places):
            return False
        self._taken.update(places)
        return True

    def take_at_addresses(self, host: Host, places: Sequence[Place]) -> bool:
        """The same for the addresses of a host. While they have none free, the host is `busy`."""
        is_free = self.take(places)
        if not is_free and len(self._busy) < _MOST_KEPT:
            self._busy[host] = places
        return is_free

    def release(self, places: Iterable[Place]) -> None:
        """Return places."""
        self._taken.subtract(places)
        self._taken += Counter()  # removes those that nobody has
        self._busy = {host: its for host, its in self._busy.items() if self._is_one_full(its)}

    def busy(self) -> tuple[list[str], list[Host]]:
        """The owners, and the hosts of other owners, that have no place left."""
        full = [place for place in self._taken if self._is_one_full([place])]
        hosts = [(place[1], place[2]) for place in full if place[0] == "host"]
        failing = [host for host in self._failing if self._is_one_full(self.of(host))]
        return [place[1] for place in full if place[0] == "owner"], [*hosts, *self._busy, *failing]

    def _is_one_full(self, places: Iterable[Place]) -> bool:
        return any(self._taken[place] >= _LIMITS[place[0]] for place in places)


def places_at(owner: str, addresses: Iterable[str]) -> list[Place]:
    """The places of a delivery to these addresses."""
    bare = {address.removeprefix("::ffff:") for address in addresses}  # IPv4, as IPv6 writes it
    return [place for address in bare for place in (("own address", owner, address), ("address", address))]
