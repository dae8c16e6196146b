"""Which clusters may be used: those that ask for a token. Runs in the bridge's process only.

Ray runs any program for whoever reaches its ports, unless it asks for a token. A cluster says so itself: a
process without a token asks it something.
"""

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import MutableMapping
from pathlib import Path

from app.common.errors import ClusterUnavailable, ProcessLost

INSECURE = "WHISPER_RAY_INSECURE=1"
_LOOPBACK = ("127.0.0.1:", "localhost:", "[::1]:")
_CONNECT_S = 5.0
_ASK_S = 60.0  # for an interpreter that imports Ray on a busy machine, and one answer
_TOKEN_SOURCES = "RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH or ~/.ray/auth_token"
_ASKS = "from app.pool.cluster.authentication import main; main()"
# Exit codes of the process that asks without a token.
_ACCEPTED, _REFUSED, _NO_ANSWER = 10, 11, 12


def set_environment(environment: MutableMapping[str, str], address: str, *, insecure: bool) -> None:
    """Change the environment of a process before it imports Ray: tokens on, statistics and traces off."""
    if not address or address.startswith(_LOOPBACK):
        # Else Ray takes another address of this machine, even if it is given this one.
        environment["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    environment["RAY_USAGE_STATS_ENABLED"] = "0"
    environment["OTEL_SDK_DISABLED"] = "true"  # its threads and CUDA's `setenv` crash models that load
    if not address:
        environment["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        environment.pop("RAY_AUTH_TOKEN_PATH", None)
    has_token = not address or not insecure or _has_token(environment)
    environment["RAY_AUTH_MODE"] = "token" if has_token else "disabled"


def check_cluster(address: str, *, insecure: bool) -> None:
    """Find out whether the cluster at `HOST:PORT` answers, asks for a token, and accepts ours.

    Raises ProcessLost if it does not answer, and ClusterUnavailable if it must not be used.
    """
    if not insecure and not _has_token(os.environ):
        raise ClusterUnavailable(
            f"there is no token for the Ray cluster at {address}: put the cluster's token into "
            f"{_TOKEN_SOURCES}, see docs/cluster.md"
        )
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
    except OSError as error:
        raise ProcessLost(
            f"no Ray cluster answers at {address} ({error.strerror or error}): start its head, or correct "
            "WHISPER_RAY_ADDRESS"
        ) from None
    if not insecure and _asked_without_token(address) == _ACCEPTED:
        raise ClusterUnavailable(
            f"the Ray cluster at {address} asks for no token: whoever reaches its ports can run any program "
            "on its nodes. Start all of its nodes with RAY_AUTH_MODE=token and the same token, or accept "
            f"the risk with {INSECURE}"
        )
    if _ask(address) == _REFUSED:
        raise ClusterUnavailable(
            f"the Ray cluster at {address} refuses the token of this machine: put the cluster's token into "
            f"{_TOKEN_SOURCES}, see docs/cluster.md"
        )


def main() -> None:
    """Ask the cluster at the address in argv something, and exit with the outcome."""
    sys.exit(_ask(sys.argv[1]))


def _asked_without_token(address: str) -> int:
    """What a process without a token gets. Raises ProcessLost if the cluster does not answer."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    environment |= {"RAY_AUTH_MODE": "disabled", "RAY_BACKEND_LOG_LEVEL": "fatal"}
    asked = [sys.executable, "-c", _ASKS, address]
    try:
        outcome = subprocess.run(asked, env=environment, capture_output=True, timeout=_ASK_S).returncode
    except subprocess.TimeoutExpired:
        outcome = _NO_ANSWER
    if outcome not in (_ACCEPTED, _REFUSED):
        raise ProcessLost(f"the Ray cluster at {address} does not answer: look at the head's logs")
    return outcome


def _ask(address: str) -> int:
    """Ask the cluster for its nodes, with the token of the environment if there is one."""
    from ray._raylet import GcsClient  # type: ignore[attr-defined]
    from ray.exceptions import AuthenticationError, RayError

    try:
        GcsClient(address=address).get_all_node_info(timeout=_CONNECT_S)
    except AuthenticationError:
        return _REFUSED
    except RayError:
        return _NO_ANSWER
    return _ACCEPTED


def _has_token(environment: MutableMapping[str, str]) -> bool:
    """Whether Ray finds a token, in the order in which it looks. Without one it would abort the process."""
    if environment.get("RAY_AUTH_TOKEN", "").strip():
        return True
    path = Path(environment.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    try:
        return bool(path.read_text().strip())
    except (OSError, UnicodeDecodeError):
        return False
