"""One web worker, forked from the process that has imported the application: it serves `config.asgi` on a socket that
all workers share.

uvicorn with uvloop and httptools is the fastest of the ASGI servers measured (docs/performance.md).
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import socket
import sys
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn
from django.conf import settings

from config.supervisor.acceptor import Acceptor
from config.supervisor.allocator import Trimming
from config.supervisor.web import BACKLOG
from config.web.protocol import BoundedProtocol
from core.processes.draining import draining

# The end of the drain, in which requests that last longer end with an error; uvicorn cuts off what is left after it.
_LAST_WORD_SECONDS = 2.0


class _Server(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, listening: socket.socket, prestop: int, serving: int, *, max_connections: int
    ) -> None:
        super().__init__(config)
        self._listening = listening
        self._prestop = prestop
        self._serving = serving
        self._max_connections = max_connections
        self._acceptor: Acceptor | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        # Code and snapshot live as long as the process: frozen, they cost the garbage collector no pauses. `config`
        # sets how rarely it runs.
        gc.collect()
        gc.freeze()
        self._acceptor = Acceptor(
            self._listening,
            self._protocol,
            lambda: len(self.server_state.connections),
            max_connections=self._max_connections,
        )
        draining.on_begin(self._send_clients_elsewhere)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._prestop, self._begin_to_drain)
        loop.add_signal_handler(signal.SIGHUP, self._leave_to_successor)
        Trimming(loop)
        if not self.should_exit:
            os.write(self._serving, b".")

    def _begin_to_drain(self) -> None:
        asyncio.get_running_loop().remove_reader(self._prestop)
        draining.begin()

    def _leave_to_successor(self) -> None:
        if self._acceptor is not None:
            self._acceptor.close()
        self._send_clients_elsewhere()

    def _send_clients_elsewhere(self) -> None:
        """Sends `connection: close` with each response: a client that keeps its connection would return to a stopping
        worker."""
        close = (b"connection", b"close")
        # uvicorn makes the list of its state from that of the configuration; running requests hold the present one.
        self.config.encoded_headers.append(close)
        self.server_state.default_headers.append(close)

    async def main_loop(self) -> None:
        """uvicorn's own looks ten times a second whether it has to end, which was most of what an idle worker did."""
        self._loop = asyncio.get_running_loop()
        if not await self.on_tick(0):
            await self._ending.wait()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._loop is not None:
            # A signal's handler interrupts the loop anywhere.
            self._loop.call_soon_threadsafe(self._ending.set)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._acceptor is not None:
            self._acceptor.close()
        drain = settings.DRAIN_SECONDS
        ending = asyncio.get_running_loop().call_later(drain - min(_LAST_WORD_SECONDS, drain / 2), self._end_requests)
        await super().shutdown(sockets=[])
        ending.cancel()

    def _end_requests(self) -> None:
        draining.is_over = True
        for task in self.server_state.tasks:
            task.cancel()

    def _protocol(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self._protocol_class(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made

    @property
    def _protocol_class(self) -> Any:
        return self.config.http_protocol_class


def main(descriptor: int, prestop: int, serving: int) -> None:
    """Serves on the listening socket `descriptor`, and writes to the pipe `serving` once it does. When the other end of
    the pipe `prestop` is closed, `/readyz` answers 503 and requests are still served."""
    config = uvicorn.Config(
        "config.asgi:application",
        loop="uvloop",
        http=BoundedProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=settings.DRAIN_SECONDS,
    )
    draining.is_supervised = True
    max_connections = min(settings.WEB_CONNECTIONS, _file_descriptors() // 2)
    _Server(config, socket.socket(fileno=descriptor), prestop, serving, max_connections=max_connections).run()


def _file_descriptors() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # Some systems report a maximum that they then refuse.
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft
