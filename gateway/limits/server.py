"""One connection to a Redis server for all requests of a worker, reopened for the worker's lifetime.

redis-py connects (addresses, Sentinels, TLS, authentication). Its commands wait for one answer each, which costs
several times the script's time, so commands go over a `channel`, whose docstring has the figures.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import redis
from django.conf import settings

from core.processes.background_tasks import keep_running
from core.redis.clients import Primary
from core.redis.failures import REDIS_ERRORS, reason
from gateway.limits.channel import Channel, Command, PlainCommand, RedisAwayError
from gateway.limits.connection import Connection, Outage

_RECONNECT_SECONDS = 0.5
CONNECT_SECONDS = 1.0


class ServerConnection(Connection):
    def __init__(
        self,
        new_connection: Callable[[], Any],
        has_moved: Callable[[Any], Awaitable[bool]] | None = None,
        *,
        timeout: float,
        outage: Outage | None,
        on_return: Callable[[], None],
        on_redirected: Callable[[Command, str], None] | None = None,
    ) -> None:
        self._new_connection = new_connection
        self._has_moved = has_moved
        self._timeout = timeout
        self._outage = outage or Outage(lambda: True)
        self._on_return = on_return
        self._on_redirected = on_redirected
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._channel: Channel | None = None
        self._disconnected = asyncio.Event()
        self._tried = asyncio.Event()
        self._connection: Any = None
        # Why a connection ended for which no command failed: it is told if the next connection fails.
        self._ended = ""
        self._task = keep_running("gateway.limits", self._live)

    @property
    def is_open(self) -> bool:
        return self._channel is not None

    def reaches(self, project: str) -> bool:
        return self._channel is not None

    async def tried(self) -> None:
        await self._tried.wait()

    def ask(self, command: Command) -> None:
        channel = self._channel
        if channel is None:
            raise RedisAwayError
        channel.send(command)

    async def answered(self) -> None:
        if self._channel is not None:
            await self._channel.answered()

    def leave(self, reason: str) -> None:
        if self._channel is not None:
            self._channel.lose(reason)

    async def close(self) -> None:
        self._closed = True
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        self.leave("closed")
        await self._drop()

    async def _live(self) -> None:
        while True:
            connected_at = self._loop.time()
            try:
                await self._connect()
                self._on_return()
                self._tried.set()
                await self._until_lost()
            except REDIS_ERRORS as error:
                self._note_away(self._ended or (str(error) if isinstance(error, _UnfitServer) else reason(error)))
                connected_at = self._loop.time()
            finally:
                self._tried.set()
                self.leave("ended")
                await self._drop()
            # A proxy may have closed an idle connection, and a new one is made at once.
            if self._loop.time() - connected_at < _RECONNECT_SECONDS:
                await asyncio.sleep(_RECONNECT_SECONDS)

    async def _connect(self) -> None:
        connection = self._connection = self._new_connection()
        async with asyncio.timeout(max(self._timeout, CONNECT_SECONDS)):
            await connection.connect()
            # A paused server accepts connections and does not answer.
            await connection.send_command("PING", check_health=False)
            await connection.read_response()
            about = await _about(connection)
        if about.get("role", "master") != "master":
            raise _UnfitServer("it is a replica")
        if about.get("redis_mode") == "cluster" and self._on_redirected is None:
            raise _UnfitServer("it is a node of a cluster")
        self._disconnected.clear()
        # All commands have been answered, so the stream's buffer is empty.
        self._channel = Channel(
            connection._writer.transport,
            run_id=about.get("run_id", ""),
            timeout=self._timeout,
            on_lost=self._lost,
            on_redirected=self._on_redirected,
        )
        self._ended = ""
        self._outage.end()

    async def _until_lost(self) -> None:
        """Returns when the connection is lost.

        Pings detect the loss, and keep proxies from closing an idle connection.
        """
        while self._channel is not None:
            try:
                async with asyncio.timeout(settings.REDIS_PING_SECONDS):
                    await self._disconnected.wait()
            except TimeoutError:
                with suppress(RedisAwayError):
                    self.ask(PlainCommand("PING"))
                await self._look_for_primary()

    async def _look_for_primary(self) -> None:
        if self._has_moved is None:
            return
        with suppress(*REDIS_ERRORS):
            async with asyncio.timeout(CONNECT_SECONDS):
                if await self._has_moved(self._connection):
                    self.leave("another server is the primary now")

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*REDIS_ERRORS):
                await connection.disconnect(nowait=True)

    def _lost(self, reason: str, has_commands: bool) -> None:
        self._channel = None
        self._ended = reason
        if has_commands:
            self._note_away(reason)
        self._disconnected.set()

    def _note_away(self, reason: str) -> None:
        if not self._closed:
            self._outage.begin(reason)


class _UnfitServer(redis.ConnectionError):
    pass


async def _about(connection: Any) -> dict[str, str]:
    """`run_id` identifies one start of the server: a server that was restarted may have lost its latest writes."""
    await connection.send_command("INFO", check_health=False)
    try:
        info = await connection.read_response(disable_decoding=True)
    except redis.ResponseError:
        return {}  # The server may forbid INFO.
    text = info if isinstance(info, str) else info.decode()
    return dict(re.findall(r"^(run_id|role|redis_mode):(\w+)", text, re.MULTILINE))


class PrimaryConnection(ServerConnection):
    def __init__(self, url: str, *, timeout: float, on_return: Callable[[], None]) -> None:
        self._primary = Primary(url, connect_seconds=CONNECT_SECONDS)
        super().__init__(
            self._primary.new_connection, self._primary.has_moved, timeout=timeout, outage=None, on_return=on_return
        )

    async def close(self) -> None:
        await super().close()
        await self._primary.close()
