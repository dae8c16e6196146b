"""A sandboxed child process that tries everything that is forbidden."""

import multiprocessing
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from workers.download import sandbox

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sandbox") / "folder"
    folder.mkdir()
    (folder / "way_out").symlink_to(folder.parent)
    return folder


@pytest.fixture(scope="module")
def child(folder: Path) -> Iterator[ProcessPoolExecutor]:
    spawn = multiprocessing.get_context("spawn")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("http_proxy", "http://127.0.0.1:9")
        patch.setenv("ALL_PROXY", "http://127.0.0.1:9")
        patch.setenv("WHISPER_API_KEYS", "secret")
        patch.setenv("WHISPER_DATABASE_URL", "postgresql://somebody:secret@host/database")
        pool = ProcessPoolExecutor(1, mp_context=spawn, initializer=sandbox.install, initargs=(folder,))
        pool.submit(os.getpid).result()
    with pool:
        yield pool


def send_datagram(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"secret", ("127.0.0.1", port))


def send_message(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendmsg([b"secret"], [], 0, ("127.0.0.1", port))


def connect(family: int, address: object) -> None:
    with socket.socket(family) as sock:
        sock.settimeout(5)
        sock.connect(address)  # type: ignore[arg-type]


def connect_ex(port: int) -> None:
    with socket.socket() as sock:
        sock.connect_ex(("127.0.0.1", port))


def test_connections_to_this_machine_fail(child: ProcessPoolExecutor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        attempts: list[tuple[Callable[..., object], tuple[object, ...]]] = [
            (connect, (socket.AF_INET, ("127.0.0.1", port))),
            (connect, (socket.AF_INET, ("localhost", port))),
            (connect, (socket.AF_INET, ("", port))),
            (connect, (socket.AF_INET, ("127.1", port))),
            (connect, (socket.AF_INET, ("2130706433", port))),
            (connect, (socket.AF_INET, (b"127.0.0.1", port))),
            (connect, (socket.AF_INET, (bytearray(b"127.0.0.1"), port))),
            (connect, (socket.AF_INET6, ("::ffff:127.0.0.1", port))),
            (connect, (socket.AF_INET6, ("::1", port, 0, 0))),
            (connect, (socket.AF_UNIX, "/run/docker.sock")),
            (connect, (socket.AF_UNIX, b"\0abstract")),
            (connect_ex, (port,)),
            (socket.create_connection, (("127.0.0.1", port),)),
            (socket.create_connection, (("localhost", port),)),
            (send_datagram, (port,)),
            (send_message, (port,)),
        ]
        for function, arguments in attempts:
            with pytest.raises(PermissionError, match="not allowed"):
                child.submit(function, *arguments).result()
        with pytest.raises(OSError, match="not allowed"):
            child.submit(urllib.request.urlopen, f"http://127.0.0.1:{port}/").result()
        with pytest.raises(BlockingIOError):
            server.accept()


def test_proxies_are_removed_from_the_environment(child: ProcessPoolExecutor) -> None:
    assert child.submit(urllib.request.getproxies).result() == {}


def environment() -> dict[str, str]:
    return dict(os.environ)


def test_the_services_settings_are_removed_from_the_environment(child: ProcessPoolExecutor) -> None:
    left = child.submit(environment).result()
    assert "PATH" in left
    assert not [name for name in left if name.startswith("WHISPER_")]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (subprocess.run, (["true"],)),
        (os.system, ("true",)),
        (os.posix_spawn, ("/bin/true", ["true"], {})),
        (os.execv, ("/bin/true", ["true"])),
        (os.fork, ()),
    ],
)
def test_no_program_is_started(
    child: ProcessPoolExecutor, function: Callable[..., object], arguments: tuple[object, ...]
) -> None:
    with pytest.raises(PermissionError, match="not allowed"):
        child.submit(function, *arguments).result()


def test_files_are_written_only_in_the_folder(child: ProcessPoolExecutor, folder: Path) -> None:
    outside = folder.parent / "outside"
    for path in (outside, folder / ".." / "outside", folder / "way_out" / "outside", Path("outside")):
        with pytest.raises(PermissionError, match="outside of the folder"):
            child.submit(Path.write_bytes, path, b"").result()
    with pytest.raises(PermissionError, match="outside of the folder"):
        child.submit(os.open, str(outside), os.O_WRONLY | os.O_CREAT).result()
    child.submit(Path.write_bytes, folder / "inside", b"recording").result()
    child.submit(os.rename, folder / "inside", folder / "renamed").result()
    assert (folder / "renamed").read_bytes() == b"recording"
    with pytest.raises(PermissionError, match="out of the folder"):
        child.submit(os.rename, folder / "renamed", outside).result()
    for link in (os.symlink, os.link):
        with pytest.raises(PermissionError, match="not allowed"):
            child.submit(link, folder / "renamed", folder / "link").result()
    assert not outside.exists()


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (os.remove, ()),
        (os.mkdir, ()),
        (os.rmdir, ()),
        (os.truncate, (0,)),
        (os.chmod, (0o777,)),
        (os.chown, (0, 0)),
        (os.utime, ()),
        (shutil.rmtree, ()),
    ],
)
def test_files_are_changed_only_in_the_folder(
    child: ProcessPoolExecutor, folder: Path, function: Callable[..., object], arguments: tuple[object, ...]
) -> None:
    outside = folder.parent / "kept"
    outside.write_bytes(b"recording")
    before = outside.stat()
    for path in (outside, folder / ".." / "kept", folder / "way_out" / "kept", os.fsencode(outside)):
        with pytest.raises(PermissionError, match="outside of the folder"):
            child.submit(function, path, *arguments).result()
    assert outside.read_bytes() == b"recording"
    assert (outside.stat().st_mode, outside.stat().st_mtime_ns) == (before.st_mode, before.st_mtime_ns)


def test_files_in_the_folder_may_be_changed(child: ProcessPoolExecutor, folder: Path) -> None:
    inner = folder / "inner"
    child.submit(os.mkdir, inner).result()
    child.submit(Path.write_bytes, inner / "recording", b"recording").result()
    child.submit(os.truncate, inner / "recording", 3).result()
    child.submit(os.chmod, inner / "recording", 0o600).result()
    assert (inner / "recording").read_bytes() == b"rec"
    child.submit(os.remove, inner / "recording").result()
    child.submit(os.rmdir, inner).result()
    assert not inner.exists()


def test_this_process_has_no_sandbox() -> None:
    assert subprocess.run([sys.executable, "-c", ""], check=True).returncode == 0
