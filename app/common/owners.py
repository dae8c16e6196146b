"""Who sends a request: API keys with names and rights. Pure but for the file of keys."""

import hashlib
import hmac
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from app.common.files import entries_of

LINK_OWNER = "link"  # of all requests by link: no user has this name

_OPERATOR = "operator"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,62}")
_UNNAMED = re.compile(r"key-[0-9a-f]{16}")
_MAX_USER_CHARS = 64  # of a name by a proxy
# Keys that are short, repeat themselves or have a common word: hardly a random one of 32 hex digits.
_GUESSABLE = re.compile(
    rb"(?i).{,15}|(.+)\1+|.*(password|changeme|secret|whisper|qwerty|example|123456|abcdef).*"
)


@dataclass(frozen=True, slots=True)
class Client:
    """Whose a request is, and what it may see.

    `owner`: a name, or that of a key without one (`unnamed_owner`); empty if the service requires no key.
    Operators see the jobs of all owners, and the workers.
    """

    owner: str = ""
    is_operator: bool = True
    link: str = ""  # signature or id of the signed or shared link that the request was made by

    @property
    def visible_owner(self) -> str | None:
        """The owner of all jobs that the client sees; None: of every owner.

        A link opens the path of its job alone, whoever owns it.
        """
        return None if self.is_operator or self.owner == LINK_OWNER else self.owner


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key, and the client that sends it."""

    secret: bytes = field(repr=False)
    client: Client


def parse_key(entry: str) -> ApiKey:
    """A key from `KEY`, `NAME:KEY` or `NAME:KEY:operator`. One without a name is an operator's.

    Raises ValueError, without the key in its message.
    """
    name, separator, rest = entry.partition(":")
    secret, has_role, role = rest.partition(":") if separator else (entry, "", "")
    if separator and not (_NAME.fullmatch(name) and is_user(name)):
        raise ValueError(
            "a key has no usable name before its colon. Write KEY, NAME:KEY or NAME:KEY:operator; a name has "
            f"up to 63 letters, digits and ._@+-, is not {LINK_OWNER!r} and not like key-0123456789abcdef"
        )
    if not secret.isprintable() or not secret or " " in secret:
        raise ValueError(
            f"the key {f'of {name!r}' if separator else 'without a name'} is empty or has blanks, which "
            "clients cannot send. Choose another one"
        )
    if has_role and role != _OPERATOR:
        raise ValueError(
            f"the key of {name!r} has a third part other than {_OPERATOR!r}. Write NAME:KEY or "
            "NAME:KEY:operator; keys themselves have no colons"
        )
    owner = name if separator else unnamed_owner(secret.encode())
    return ApiKey(secret.encode(), Client(owner, not separator or bool(has_role)))


def parse_keys(entries: Iterable[str]) -> tuple[ApiKey, ...]:
    """All keys of some entries. Raises ValueError as `parse_key`, and if two clients have one key."""
    keys = [parse_key(entry) for entry in entries]
    clients: dict[bytes, Client] = {}
    for key in keys:
        if clients.setdefault(key.secret, key.client) != key.client:
            raise ValueError(
                f"{key.client.owner!r} and {clients[key.secret].owner!r} have the same key. Give each its own"
            )
    return tuple(keys)


def unnamed_owner(secret: bytes) -> str:
    """The owner of a key without a name: `key-` and 16 digits of its SHA-256 in hexadecimal."""
    return f"key-{hashlib.sha256(secret).hexdigest()[:16]}"


def is_user(name: str) -> bool:
    """Whether a name can be an owner: not empty, not too long, no control characters, and none of ours."""
    is_ours = name == LINK_OWNER or _UNNAMED.fullmatch(name)
    return name.isprintable() and 0 < len(name) <= _MAX_USER_CHARS and not is_ours


class KeyRing:
    """The keys that are valid now: those of the settings, and of a file that may change."""

    def __init__(self, entries: Collection[str], file: Path | None = None) -> None:
        """Raises ValueError and OSError, as `load`."""
        self._entries = tuple(entries)
        self._file = file
        self._keys: tuple[ApiKey, ...] = ()
        self.load()

    def load(self) -> None:
        """Read the file again. After an error, all keys stay as they were.

        Raises ValueError for a wrong entry or no key at all, and OSError.
        """
        lines: list[str] = []
        if self._file is not None:
            lines = entries_of(self._file)
            if not lines and not self._entries:
                raise ValueError(
                    f"{self._file} has no key. Write one in a line: KEY, NAME:KEY or NAME:KEY:operator"
                )
        self._keys = parse_keys([*self._entries, *lines])

    def __len__(self) -> int:
        return len(self._keys)

    def owners(self) -> set[str]:
        """All owners that have keys."""
        return {key.client.owner for key in self._keys}

    def guessable(self) -> list[str]:
        """The owners of keys that others could guess."""
        found = (key for key in self._keys if len(set(key.secret)) < 8 or _GUESSABLE.fullmatch(key.secret))
        return sorted({key.client.owner for key in found})

    def named(self) -> dict[str, str]:
        """The name for the owner that each key with a name would be without it."""
        owners = {unnamed_owner(key.secret): key.client.owner for key in self._keys}
        return {unnamed: owner for unnamed, owner in owners.items() if unnamed != owner}

    def find(self, secret: bytes) -> Client | None:
        """The client that sends a key; None if nobody does.

        Compares with every key, each in constant time: the duration reveals nothing about the keys.
        """
        found = [key.client for key in self._keys if hmac.compare_digest(secret, key.secret)]
        return found[0] if found else None
