"""Clients that ask, and then read slowly or not at all."""

import socket

RECEIVE_BYTES = 1 << 16  # that the kernel takes for such a client


def ask(
    port: int,
    target: str,
    method: str = "GET",
    body: bytes = b"",
    *,
    key: str | None = None,
    **headers: str,
) -> socket.socket:
    """A connection on which `target` was asked for, and nothing was read."""
    headers |= {"host": "localhost", "content_length": str(len(body))}
    if key:
        headers["authorization"] = f"Bearer {key}"
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
    connection.settimeout(15)
    connection.connect(("127.0.0.1", port))
    connection.sendall(f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode() + body)
    return connection


def read_all(connection: socket.socket) -> bytes:
    """What comes until the server closes the connection."""
    received = bytearray()
    try:
        while part := connection.recv(1 << 20):
            received += part
    except ConnectionResetError:
        pass
    return bytes(received)
