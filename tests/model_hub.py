"""A small Hugging Face on loopback: the demo model under some names, with cuts and refusals."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from app.engines.model_files import DEMO_PATH

WEIGHTS = "model.bin"
COMMIT = "c0ffee" + "0" * 34
_REFUSALS = {401: "RepoNotFound", 403: "GatedRepo", 404: "RepoNotFound"}


@dataclass
class Hub:
    """What the hub offers, how it misbehaves, and what it was asked for."""

    folder: Path = DEMO_PATH
    repositories: tuple[str, ...] = ("Systran/faster-whisper-tiny",)
    refused: dict[str, int] = field(default_factory=dict)  # the status of each repository that is refused
    cut_after: int | None = None  # the next answers with weights end after so many bytes
    stalled: threading.Event = field(default_factory=threading.Event)  # set once one has been cut so
    holds: bool = False  # a cut answer stays open instead of ending
    hides_cuts: bool = False  # a cut answer says that it is whole
    ignores_range: bool = False
    sent: int = 0  # bytes of weights
    starts: list[int] = field(default_factory=list)  # first byte of each answer with weights
    url: str = ""
    closing: threading.Event = field(default_factory=threading.Event)

    def files(self) -> dict[str, bytes]:
        return {
            path.name: path.read_bytes()
            for path in sorted(self.folder.iterdir())
            if path.suffix in (".json", ".bin", ".onnx", ".txt")
        }


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None: ...

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        if path == "/":
            return self._send(200, b"", {}, with_body)
        match = re.fullmatch(r"(?:/api/models)?/([^/]+/[^/]+?)(?:/(resolve|tree|revision)/(.*))?", path)
        repository, kind, rest = match.groups() if match else ("", None, None)
        status = self.hub.refused.get(repository, 200 if repository in self.hub.repositories else 404)
        if status != 200:
            headers = {"X-Error-Code": _REFUSALS[status], "X-Error-Message": "refused"}
            return self._send(status, b"{}", headers, with_body)
        files = self.hub.files()
        if kind == "resolve":
            return self._send_file(rest.partition("/")[2], files, with_body)
        entries = [_entry(name, content) for name, content in files.items()]
        if kind == "tree":
            return self._send_json(entries)
        siblings = [{"rfilename": entry["path"], **entry} for entry in entries]
        return self._send_json({"id": repository, "modelId": repository, "sha": COMMIT, "siblings": siblings})

    def _send_json(self, document: Any) -> None:
        self._send(200, json.dumps(document).encode(), {"Content-Type": "application/json"}, True)

    def _send_file(self, name: str, files: dict[str, bytes], with_body: bool) -> None:
        if name not in files:
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound"}, with_body)
        content = files[name]
        headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Repo-Commit": COMMIT}
        wanted = "" if self.hub.ignores_range else self.headers.get("Range", "")
        given = re.fullmatch(r"bytes=(\d+)-", wanted)
        start = int(given[1]) if given else 0
        if given:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        if name == WEIGHTS and with_body:
            return self._send_weights(content, start, headers, 206 if given else 200)
        return self._send(206 if given else 200, content[start:], headers, with_body)

    def _send_weights(self, content: bytes, start: int, headers: dict[str, str], status: int) -> None:
        hub = self.hub
        hub.starts.append(start)
        end = len(content) if hub.cut_after is None else min(start + hub.cut_after, len(content))
        self._head(status, (end if hub.hides_cuts else len(content)) - start, headers)
        self.wfile.write(content[start:end])
        self.wfile.flush()
        hub.sent += end - start
        if end < len(content):
            hub.stalled.set()
            if hub.holds:
                hub.closing.wait(60)
            self.close_connection = not hub.hides_cuts
        return

    def _send(self, status: int, body: bytes, headers: dict[str, str], with_body: bool) -> None:
        self._head(status, len(body), headers)
        if with_body:
            self.wfile.write(body)

    def _head(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()


def _entry(name: str, content: bytes) -> dict[str, Any]:
    """A file, as the hub lists it."""
    digest = hashlib.sha256(content).hexdigest()
    entry: dict[str, Any] = {"type": "file", "path": name, "size": len(content), "oid": digest[:40]}
    if name == WEIGHTS:
        entry["lfs"] = {"oid": digest, "sha256": digest, "size": len(content), "pointerSize": 134}
    return entry


@contextmanager
def model_hub(**behaviour: Any) -> Iterator[Hub]:
    """A hub on loopback."""
    hub = Hub(**behaviour)
    handler = type("Handler", (_Handler,), {"hub": hub})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        hub.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            hub.closing.set()
            server.shutdown()
            thread.join(5)
