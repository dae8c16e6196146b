"""Recordings on their way to a service, as forms."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from typing import BinaryIO

from app.client.answers import NotRead

_READ_BYTES = 1 << 18

# Gets how many bytes of a recording were sent, from none in each attempt on, and how many it has.
Report = Callable[[int, int], None]


class FormBody:
    """A form with a recording from its start, as many bytes as it has now."""

    def __init__(
        self,
        file: BinaryIO,
        file_field: str,
        filename: str,
        fields: Mapping[str, str],
        report: Report = lambda sent, size: None,
    ) -> None:
        """The service sees `fields` first, and may refuse them before the recording arrives."""
        boundary = os.urandom(16).hex()
        parts = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        ]
        name = filename.replace("\\", "\\\\").replace('"', "%22")  # as browsers do
        parts.append(
            f'--{boundary}\r\nContent-Disposition: form-data; name="{file_field}"; filename="{name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        self._head = "".join(parts).encode()
        self._tail = f"\r\n--{boundary}--\r\n".encode()
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        self._report = report
        self._fault: OSError | None = None
        self._missing = False
        self.headers = {
            "Content-Type": f"multipart/form-data; boundary={boundary}",
            "Content-Length": str(len(self._head) + self._size + len(self._tail)),
        }

    async def chunks(self) -> AsyncIterator[bytes]:
        """Ends early if the file does; `check` raises then."""
        self._report(0, self._size)
        yield self._head
        self._file.seek(0)
        left = self._size
        while left:
            try:
                chunk = await asyncio.to_thread(self._file.read, min(_READ_BYTES, left))
            except OSError as error:
                self._fault = error
                return
            if not chunk:
                self._missing = True
                return
            left -= len(chunk)
            self._report(self._size - left, self._size)
            yield chunk
        yield self._tail

    def check(self) -> None:
        """Raise NotRead if the file could not be read to its end."""
        if self._fault is not None:
            raise NotRead(f"it cannot be read: {self._fault.strerror}") from self._fault
        if self._missing:
            raise NotRead("it became shorter while it was sent")
