"""The ports of Ray in what is shipped, and which options `ray start` has."""

import re
import shlex
from functools import cache

HEAD = {"port": "6379"}
NODE = {
    "node-manager-port": "6380",
    "object-manager-port": "6381",
    "min-worker-port": "6400",
    "max-worker-port": "6999",
}


def options(command: str) -> dict[str, str]:
    """The options of the `ray start` in a shell command, without dashes; "" if one has no value."""
    [found] = re.findall(r"ray start ([^\n;&]*)", command.replace("\\\n", " "))
    words = shlex.split(found)
    assert all(word.startswith("--") for word in words), words
    return {name[2:]: value for name, _, value in (word.partition("=") for word in words)}


@cache
def known_options() -> frozenset[str]:
    """The options of `ray start` in the version that is installed, also those that its help does not list."""
    from ray.scripts.scripts import start

    return frozenset(name.removeprefix("--") for parameter in start.params for name in parameter.opts)


def check(given: dict[str, str], *, head: bool) -> None:
    """Check that Ray knows all options, that the ports are ours, and that nothing listens for strangers."""
    assert set(given) <= known_options()
    assert NODE.items() <= given.items()
    if head:
        assert (given["num-cpus"], given["num-gpus"], given["include-dashboard"]) == ("0", "0", "false")
