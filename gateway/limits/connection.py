"""One connection to Redis for all requests of a worker, reopened for as long as the worker lives. redis-py connects
(addresses, TLS, authentication); its own commands wait for one answer each, which costs several times the script's
time, so commands go over a `channel`, which names the measured figure and the condition for its removal."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import redis
import redis.asyncio

from core.processes.background_tasks import keep_running
from gateway.limits.channel import AwaitedCommand, Channel, Command, RedisAwayError
from gateway.limits.scripts import Argument, Script, packed

logger = logging.getLogger("gateway.limits")

_RECONNECT_SECONDS = 0.5
_CONNECT_SECONDS = 1.0


class ScriptConnection:
    """Runs scripts. While Redis is away every call fails at once, and one log line reports it; `on_return` is called
    after each connect, the first included. The object belongs to one event loop."""

    def __init__(self, url: str, *, timeout: float, on_return: Callable[[], None]) -> None:
        """`timeout` is the number of seconds without an answer after which Redis counts as away."""
        self._pool = redis.asyncio.ConnectionPool.from_url(
            url, protocol=2, socket_connect_timeout=None, socket_timeout=None, retry=None, health_check_interval=0
        )
        self._timeout = timeout
        self._on_return = on_return
        self._loop = asyncio.get_running_loop()
        # The id of one start of the server: a server that was restarted may have lost its latest writes.
        self.run_id = ""
        self._was_away = False
        self._closed = False
        self._channel: Channel | None = None
        self._disconnected = asyncio.Event()
        self._tried = asyncio.Event()
        self._connection: Any = None
        self._task = keep_running("gateway.limits", self._live)

    @property
    def is_open(self) -> bool:
        return self._channel is not None

    async def tried(self) -> None:
        """Waits until the first attempt to connect has succeeded or failed."""
        await self._tried.wait()

    def ask(self, command: Command) -> None:
        """Sends a command. Raises RedisAwayError at once while there is no connection; neither callback is called
        then."""
        channel = self._channel
        if channel is None:
            raise RedisAwayError
        channel.send(command)

    def run(self, script: Script, keys: Sequence[str], arguments: Sequence[Argument]) -> asyncio.Future[Any]:
        """Returns the future of a script's result. It fails with RedisAwayError, or with redis.ResponseError when the
        script fails. Raises RedisAwayError at once while there is no connection."""
        words = (len(keys), *keys, *arguments)
        command = AwaitedCommand(script, script.begun(len(words)) + packed(words), self._loop)
        self.ask(command)
        return command.answer

    async def answered(self) -> None:
        """Returns when Redis has answered all commands, or is away."""
        if self._channel is not None:
            await self._channel.answered()

    async def close(self) -> None:
        self._closed = True
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        if self._channel is not None:
            self._channel.lose("closed")
        await self._drop()
        await self._pool.aclose()

    async def _live(self) -> None:
        while True:
            try:
                await self._connect()
                self._on_return()
                self._tried.set()
                await self._disconnected.wait()
            except (redis.RedisError, OSError) as error:
                self._note_away(type(error).__name__)
            finally:
                self._tried.set()
                if self._channel is not None:
                    self._channel.lose("ended")
                await self._drop()
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _connect(self) -> None:
        connection: Any = self._pool.make_connection()  # type: ignore[no-untyped-call]
        self._connection = connection
        async with asyncio.timeout(max(self._timeout, _CONNECT_SECONDS)):
            await connection.connect()
            # A paused server accepts connections and does not answer.
            await connection.send_command("PING", check_health=False)
            await connection.read_response()
            self.run_id = await _run_id(connection)
        self._disconnected.clear()
        # All commands have been answered, so the stream's buffer is empty.
        self._channel = Channel(connection._writer.transport, timeout=self._timeout, on_lost=self._lost)
        if self._was_away:
            logger.warning("redis.back")
        self._was_away = False

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(redis.RedisError, OSError):
                await connection.disconnect(nowait=True)

    def _lost(self, reason: str) -> None:
        self._channel = None
        self._note_away(reason)
        self._disconnected.set()

    def _note_away(self, reason: str) -> None:
        if not self._was_away and not self._closed:
            self._was_away = True
            logger.warning("redis.away reason=%s", reason)


async def _run_id(connection: Any) -> str:
    await connection.send_command("INFO", "server", check_health=False)
    try:
        info = await connection.read_response(disable_decoding=True)
    except redis.ResponseError:
        return ""  # The server may forbid INFO.
    if isinstance(info, str):
        info = info.encode()
    found = re.search(rb"^run_id:(\w+)", info, re.MULTILINE)
    return found[1].decode() if found else ""
