"""The listening socket and the web workers that share it."""

from __future__ import annotations

import asyncio
import socket

from typing_extensions import override

from config.supervisor import polling
from config.supervisor.children import Service
from config.supervisor.processes import Program

BACKLOG = 2048


def listen(host: str, port: int) -> socket.socket:
    """Returns the listening socket, which workers inherit, so that a worker that dies loses no waiting connection.

    Raises OSError when the address is taken or does not belong to this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


def reachable_address(listening: socket.socket) -> tuple[str, int]:
    """Returns host and port by which clients on this machine reach the socket."""
    host, port = listening.getsockname()[:2]
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port  # noqa: S104 - compared, not bound


def base_url(listening: socket.socket) -> str:
    host, port = reachable_address(listening)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class WebWorker(Service):
    def __init__(self, number: int, listening: socket.socket, prestop: int, *, drain_seconds: int) -> None:
        """`prestop` is an inherited descriptor: when its other end is closed, the workers answer `/readyz` with 503 and
        still serve requests."""
        self.role = f"web-{number}"
        self.stop_seconds = drain_seconds + 5.0
        self._descriptors = (listening.fileno(), prestop)
        self._address = reachable_address(listening)

    @override
    def program(self) -> Program:
        return Program((), "config.supervisor.web_worker:main", self._descriptors)

    @override
    async def ready(self) -> None:
        await polling.until(self._answers)

    async def _answers(self) -> bool:
        """Returns whether a worker accepts a connection and answers; any HTTP response counts."""
        try:
            reader, writer = await asyncio.open_connection(*self._address)
        except OSError:
            return False
        try:
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return (await reader.readline()).startswith(b"HTTP/1.1 ")
        except OSError:
            return False
        finally:
            writer.close()
