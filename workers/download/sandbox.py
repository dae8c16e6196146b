"""Holds a child that visits URLs to what it is for: it reaches the public internet and writes to one folder.

The last line of defence, below whatever the libraries in the child do: Python's audit events, which cannot
be taken back once they are watched. So this is never installed in the server itself.
"""

import os
import sys
from pathlib import Path
from typing import Any

from workers.addresses import is_public

# Other programs, other ways to the network, and links that lead out of the folder.
_NEVER = frozenset(
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
# What changes a file or a folder, named by its first argument.
_CHANGES = frozenset(
    {"os.chmod", "os.chown", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.utime", "shutil.rmtree"}
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def install(folder: Path) -> None:
    """From now on this process connects to public addresses only, starts no program, and writes in `folder`.

    Anything else fails with PermissionError before it happens. Proxies of the environment are forgotten: they
    would connect to where this process may not. So are the service's settings, some of which are secrets.
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

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if event in _NEVER:
            raise PermissionError(f"{event} is not allowed here")
        if event == "socket.connect" and not _may_connect(args[1]):
            raise PermissionError("connecting to an address that is not public is not allowed here")
        if event == "socket.sendmsg" and args[1] is not None:
            raise PermissionError(f"{event} is not allowed here")
        # An open file may be opened once more, as multiprocessing does with its pipes.
        if event == "open" and args[2] & _WRITES and not isinstance(args[0], int) and not inside(args[0]):
            raise PermissionError("writing outside of the folder is not allowed here")
        if event in _CHANGES and not isinstance(args[0], int) and not inside(args[0]):
            raise PermissionError("changing files outside of the folder is not allowed here")
        if event == "os.rename" and not (inside(args[0]) and inside(args[1])):
            raise PermissionError("moving files out of the folder is not allowed here")

    sys.addaudithook(watch)


def _may_connect(address: Any) -> bool:
    """Whether a socket may connect to this: a public address, and never a name, which would be resolved."""
    host = address[0] if isinstance(address, tuple) and address else None
    return isinstance(host, str) and is_public(host)
