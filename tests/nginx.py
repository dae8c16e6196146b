"""nginx with the configuration of the documentation, on a loopback port and with a certificate of its own."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEPLOY = Path(__file__).parents[1] / "deploy"
NAMES = ("nginx", "/usr/sbin/nginx")
REQUIRED = os.environ.get("REQUIRE_NGINX") == "1"
MISSING = "there is no nginx. Install it (Debian: `apt-get install nginx-light`)"


def find_nginx() -> str | None:
    """Its path; None if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def running_nginx(
    folder: Path,
    port: int,
    service_port: int,
    configuration: str = "nginx.conf",
    login_port: int | None = None,
) -> Iterator[None]:
    """Run nginx in front of the service on `service_port`, with TLS on `port`. It may not listen yet.

    `login_port`: of a login proxy, if the `configuration` has one.
    """
    program = find_nginx()
    assert program is not None, f"{MISSING}."
    folder.mkdir()
    request = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run([*request, "-subj", "/CN=127.0.0.1", *files], check=True, capture_output=True)
    changed = {
        "    listen 80;\n    listen [::]:80;\n": f"    listen unix:{folder}/plain.sock;\n",
        "    listen [::]:443 ssl http2;\n": "",
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/letsencrypt/live/media.example.org/fullchain.pem": f"{folder}/cert.pem",
        "/etc/letsencrypt/live/media.example.org/privkey.pem": f"{folder}/key.pem",
        "proxy_set_header Host $host;": "proxy_set_header Host $http_host;",  # the port is not that of https
    }
    servers = (DEPLOY / configuration).read_text()
    servers = servers.replace("http://127.0.0.1:8000;", f"http://127.0.0.1:{service_port};")
    servers = servers.replace("http://127.0.0.1:4180;", f"http://127.0.0.1:{login_port};")
    for text, other in changed.items():
        assert servers.count(text) == 1, text
        servers = servers.replace(text, other)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;\n" if os.getuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"{user}daemon off;\nmaster_process off;\npid {folder}/nginx.pid;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}{servers}}}\n"
    )
    log = folder / "error.log"
    process = subprocess.Popen([program, "-p", folder, "-c", folder / "nginx.conf", "-e", log])
    try:
        yield
        assert process.poll() is None, log.read_text()
    finally:
        process.terminate()
        process.wait(10)
