from __future__ import annotations

import os
import socket

from config.supervisor import polling
from config.supervisor.children import Service
from config.supervisor.processes import Program

BACKLOG = 2048
_FIRST_PASSED = 3


def inherited() -> socket.socket | None:
    """Returns the socket that a service manager keeps open while `serve` is replaced (sd_listen_fds(3)), so that no
    connection is refused meanwhile. Call it in the process that was started, before it forks."""
    pid, number, _ = (os.environ.pop(name, "") for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"))
    if (pid, number) != (str(os.getpid()), "1"):
        return None
    os.set_inheritable(_FIRST_PASSED, False)
    return socket.socket(fileno=_FIRST_PASSED)


def listen(host: str, port: int) -> socket.socket:
    """Returns the socket, which workers inherit, so that a dying worker loses no waiting connection.

    Raises OSError if the address is taken or does not belong to this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


def reachable_address(listening: socket.socket) -> tuple[str, int]:
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
        # All workers share the socket, so that an answer on it would not say which of them serves.
        self._serving_seen, serving = os.pipe()
        os.set_blocking(self._serving_seen, False)
        self._descriptors = (listening.fileno(), prestop, serving)

    def program(self) -> Program:
        self._has_begun_to_serve()  # What a process before this one said of itself is forgotten.
        return Program((), "config.supervisor.web_worker:main", self._descriptors)

    async def ready(self) -> None:
        await polling.until(self._serves)

    async def _serves(self) -> bool:
        return self._has_begun_to_serve()

    def _has_begun_to_serve(self) -> bool:
        try:
            return bool(os.read(self._serving_seen, 4096))
        except BlockingIOError:
            return False
