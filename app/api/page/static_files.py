"""A folder of static files: compressed, and downloaded again only when they have changed."""

import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from app.api.transcripts.versions import is_known, not_modified

# Not from `mimetypes`, which reads the machine's tables: browsers refuse modules and styles of another type.
CONTENT_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".ogg": "audio/ogg",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
# Other sites do not see where users come from.
# Not `no-referrer`: a browser would then send `Origin: null` with some changes that the page makes.
HEADERS = {"Referrer-Policy": "same-origin"}

_TAKES_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))")


@dataclass(frozen=True, slots=True)
class _Content:
    plain: bytes
    compressed: bytes
    digest: str


class StaticFolder:
    """The files of a folder. They are found at the start, and read again when they have changed."""

    def __init__(self, folder: Path) -> None:
        """Files of other types than `CONTENT_TYPES` are not served."""
        self._files = {
            path.relative_to(folder).as_posix(): path
            for path in folder.rglob("*")
            if path.is_file() and path.suffix in CONTENT_TYPES
        }

    def answer(self, request: Request) -> Response:
        """The endpoint of `…/{name:path}`, for a thread: it reads and compresses. Raises HTTPException."""
        path = self._files.get(request.path_params["name"])
        if path is None or not path.is_file():
            raise HTTPException(404)
        status = path.stat()
        content = _read(path, status.st_mtime_ns, status.st_size)
        is_compressed = _TAKES_GZIP.search(request.headers.get("accept-encoding", "")) is not None
        headers = HEADERS | {
            "Cache-Control": "no-cache",
            "ETag": f'"{content.digest}{"-gzip" if is_compressed else ""}"',
            "Vary": "Accept-Encoding",
        }
        if is_known(request.headers.get("if-none-match", ""), headers["ETag"]):
            return not_modified(headers)
        if is_compressed:
            headers["Content-Encoding"] = "gzip"
        headers["Content-Type"] = CONTENT_TYPES[path.suffix]
        return Response(content.compressed if is_compressed else content.plain, headers=headers)


@lru_cache(maxsize=512)
def _read(path: Path, mtime_ns: int, size: int) -> _Content:
    plain = path.read_bytes()
    return _Content(plain, gzip.compress(plain, mtime=0), hashlib.sha256(plain).hexdigest()[:32])
