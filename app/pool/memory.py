"""The state of processes, as Linux gives it: their memory, and whether they were stopped or killed."""

import re
from contextlib import suppress
from functools import cache
from pathlib import Path

_GROUPS, _OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def oom_kills() -> int | None:
    """How many processes of this control group the kernel has killed for memory; None if it does not say."""
    for path in _counters():
        with suppress(OSError):
            if found := re.search(rb"^oom_kill (\d+)", path.read_bytes(), re.MULTILINE):
                return int(found[1])
    return None


@cache
def _counters() -> tuple[Path, ...]:
    """Files that may have the counter, in both versions. A container sees its own as root."""
    found = []
    with suppress(OSError):
        for line in _OWN_GROUPS.read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if not controllers or "memory" in controllers.split(","):
                folder = _GROUPS / controllers
                name = "memory.oom_control" if controllers else "memory.events"
                found += [folder / group.strip("/") / name, folder / name]
    return tuple(found)


def peak_bytes(pid: int) -> int | None:
    """The most memory that a process has taken so far (bytes); None if it is gone."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_bytes()
        if found := re.search(rb"^VmHWM:\s+(\d+) kB", status, re.MULTILINE):
            return int(found[1]) << 10
    return None


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped by a signal or a debugger: then it does not hang."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    return False
