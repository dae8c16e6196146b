"""Restricts a download worker: it connects to the public internet and writes to one folder, nothing else.

This is the last line of defence, whatever the libraries in the process do. It uses an audit hook of Python,
which cannot be removed again, so it is never installed in the server itself.
"""

import os
import sys
from pathlib import Path
from typing import Any

from workers.addresses import is_public

# Events that start programs, use the network in other ways, or make links that lead out of the folder.
_FORBIDDEN = frozenset(
    {
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.link",
        "os.posix_spawn",
        "os.spawn",
        "os.symlink",
        "os.system",
        "pty.spawn",
        "socket.bind",
        "socket.sendto",
        "subprocess.Popen",
    }
)
# Events that change the file or folder in their first argument.
_CHANGES = frozenset(
    {"os.chmod", "os.chown", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.utime", "shutil.rmtree"}
)
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def install(folder: Path) -> None:
    """From now on this process connects to public addresses only, starts no program, and writes in `folder`.

    Anything else fails with PermissionError before it happens. Also removes two kinds of environment
    variables: proxies, because they could connect to private addresses, and the service's settings, because
    some of them are secrets.
    """
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith("WHISPER_"):
            del os.environ[name]
    sys.dont_write_bytecode = True
    root = os.path.join(os.path.realpath(folder), "")  # noqa: PTH118

    def inside(path: Any) -> bool:
        return isinstance(path, str | bytes | os.PathLike) and (
            os.path.realpath(os.fsdecode(path)).startswith(root)
        )

    def check(event: str, args: tuple[Any, ...]) -> None:
        if event in _FORBIDDEN:
            raise PermissionError(f"{event} is not allowed here")
        if event == "socket.connect" and not _may_connect(args[1]):
            raise PermissionError("connecting to an address that is not public is not allowed here")
        if event == "socket.sendmsg" and args[1] is not None:
            raise PermissionError(f"{event} is not allowed here")
        # An integer is a file that is open already: multiprocessing opens its pipes so.
        if (
            event == "open"
            and args[2] & _WRITE_FLAGS
            and not isinstance(args[0], int)
            and not inside(args[0])
        ):
            raise PermissionError("writing outside of the folder is not allowed here")
        if event in _CHANGES and not isinstance(args[0], int) and not inside(args[0]):
            raise PermissionError("changing files outside of the folder is not allowed here")
        if event == "os.rename" and not (inside(args[0]) and inside(args[1])):
            raise PermissionError("moving files out of the folder is not allowed here")

    sys.addaudithook(check)


def _may_connect(address: Any) -> bool:
    """Whether a socket may connect to this address. A name may not be used: the system would resolve it."""
    host = address[0] if isinstance(address, tuple) and address else None
    return isinstance(host, str) and is_public(host)
