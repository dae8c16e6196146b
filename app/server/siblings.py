"""The other server processes of a service: each answers the others on a socket in the data folder."""

import asyncio
import os
import re
import socket
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import httpx

from app.settings import Settings

FOLDER = "front_ends"  # in the data folder, for the service's user alone
_ANSWER_S = 2.0
_MAX_PATH_BYTES = 100  # of a socket; the kernel's limit is 108, in some systems 104

Params = Mapping[str, str]


def front_end_names(settings: Settings) -> list[str]:
    """The names of several server processes."""
    name = settings.front_end or re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:60]
    return [f"{name}-{index}" for index in range(settings.processes)]


class Siblings:
    """Asks the others. One that does not answer is left out: the supervisor replaces it."""

    def __init__(self, data_dir: Path, name: str = "", others: Sequence[str] = ()) -> None:
        """`name`: that of this process; `others`: those of all others. None: this process is alone."""
        self.name = name
        self.others = tuple(others)
        self._folder = data_dir / FOLDER
        self._clients: dict[str, httpx.AsyncClient] = {}

    def path(self, name: str) -> str:
        """The socket of a process. A long path goes by way of this process's descriptor of the folder."""
        path = self._folder / f"{name}.sock"
        if len(os.fsencode(path)) <= _MAX_PATH_BYTES:
            return str(path)
        return f"/proc/self/fd/{self._descriptor}/{path.name}"

    @cached_property
    def _descriptor(self) -> int:
        return os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)

    @property
    def address(self) -> str:
        """Where this process answers others of this machine; empty if it does not."""
        return str(self._folder / f"{self.name}.sock") if self.others else ""

    def listen(self) -> socket.socket:
        """The socket of this process, in place of one that a killed process left. Raises OSError."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path = self.path(self.name)
        Path(path).unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            os.fchmod(listener.fileno(), 0o600)  # Linux gives the file this mode, whatever the umask allows
            listener.bind(path)
            Path(path).chmod(0o600)
        except BaseException:
            listener.close()
            raise
        return listener

    def have_sockets(self) -> bool:
        """Whether any of the others has begun to answer since `remove_sockets`."""
        return any(Path(self.path(name)).exists() for name in self.others)

    def remove_sockets(self) -> None:
        """Remove the sockets of the others, none of which runs."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        for name in self.others:
            Path(self.path(name)).unlink(missing_ok=True)

    async def ask(
        self,
        name: str,
        path: str,
        params: Params | None = None,
        *,
        method: str = "GET",
        wait_s: float = _ANSWER_S,
    ) -> httpx.Response:
        """What a process answers. Raises TransportError if it does not, and HTTPStatusError for an error."""
        client = self._clients.get(name)
        if client is None:
            transport = httpx.AsyncHTTPTransport(uds=self.path(name), verify=False)
            client = self._clients[name] = httpx.AsyncClient(transport=transport, base_url="http://sibling")
        response = await client.request(method, path, params=params, timeout=wait_s)
        return response.raise_for_status()

    async def ask_all(self, path: str) -> dict[str, httpx.Response]:
        """What each process answers that does, by its name."""
        answers = await asyncio.gather(
            *(self.ask(name, path) for name in self.others), return_exceptions=True
        )
        found = {}
        for name, answer in zip(self.others, answers, strict=True):
            if isinstance(answer, httpx.Response):
                found[name] = answer
            elif not isinstance(answer, httpx.HTTPError):
                raise answer
        return found

    async def are_ready(self) -> bool:
        """Whether any of the others can take requests."""
        return bool(await self.ask_all("/ready"))

    async def close(self) -> None:
        """Close the connections to the others."""
        await asyncio.gather(*(client.aclose() for client in self._clients.values()))
        self._clients.clear()
