"""One connection to Redis for all requests of a worker, made again for as long as the worker lives.

redis-py connects (addresses, TLS, authentication); its own commands wait for one answer each, which costs several times
what the script takes, so that the questions go over a channel of their own (`channel`).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import redis
import redis.asyncio

from gateway.limits.channel import Awaited, Channel, Question, RedisAwayError
from gateway.limits.scripts import Argument, Script, packed

logger = logging.getLogger("gateway.limits")

_RECONNECT_SECONDS = 0.5
_CONNECT_SECONDS = 1.0


class ScriptConnection:
    """Runs scripts. While Redis is away every call fails at once, and one line in the log says so; `on_return` is
    called when it is there, the first time included. Belongs to one event loop."""

    def __init__(self, url: str, *, patience: float, on_return: Callable[[], None]) -> None:
        """`patience`: seconds to wait for an answer before Redis counts as away."""
        self._pool = redis.asyncio.ConnectionPool.from_url(
            url, protocol=2, socket_connect_timeout=None, socket_timeout=None, retry=None, health_check_interval=0
        )
        self._patience = patience
        self._on_return = on_return
        self._loop = asyncio.get_running_loop()
        # Which start of which server is asked: one that was started again may have forgotten what it was told last.
        self.run_id = ""
        self._was_away = False
        self._closed = False
        self._channel: Channel | None = None
        self._news = asyncio.Event()
        self._tried = asyncio.Event()
        self._connection: Any = None
        self._task = self._loop.create_task(self._live(), name="gateway.limits")

    @property
    def is_open(self) -> bool:
        return self._channel is not None

    async def tried(self) -> None:
        """Returns when the first attempt to connect has succeeded or failed."""
        await self._tried.wait()

    def ask(self, question: Question) -> None:
        """Raises RedisAwayError at once while there is no connection; then the question hears nothing."""
        channel = self._channel
        if channel is None:
            raise RedisAwayError
        channel.send(question)

    def run(self, script: Script, keys: Sequence[str], arguments: Sequence[Argument]) -> asyncio.Future[Any]:
        """What the script will have returned. The future fails with RedisAwayError, or with redis.ResponseError when
        the script itself does. Raises RedisAwayError at once while there is no connection."""
        words = (len(keys), *keys, *arguments)
        question = Awaited(script, script.begun(len(words)) + packed(words), self._loop)
        self.ask(question)
        return question.answer

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
            except Exception as error:
                # Whatever it was: without this task Redis would be away for as long as the worker lives.
                self._note_away(type(error).__name__)
                self._tried.set()
            else:
                self._on_return()
                self._tried.set()
                await self._news.wait()
            await self._drop()
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _connect(self) -> None:
        connection: Any = self._pool.make_connection()  # type: ignore[no-untyped-call]
        self._connection = connection
        async with asyncio.timeout(max(self._patience, _CONNECT_SECONDS)):
            await connection.connect()
            # A server that is paused takes connections and does not answer.
            await connection.send_command("PING", check_health=False)
            await connection.read_response()
            self.run_id = await _run_id(connection)
        self._news.clear()
        # All that was asked has been answered: nothing is left in the stream.
        self._channel = Channel(connection._writer.transport, patience=self._patience, on_lost=self._lost)
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
        self._news.set()

    def _note_away(self, reason: str) -> None:
        if not self._was_away and not self._closed:
            self._was_away = True
            logger.warning("redis.away reason=%s", reason)


async def _run_id(connection: Any) -> str:
    await connection.send_command("INFO", "server", check_health=False)
    try:
        told = await connection.read_response(disable_decoding=True)
    except redis.ResponseError:
        return ""  # it may be forbidden
    if isinstance(told, str):
        told = told.encode()
    found = re.search(rb"^run_id:(\w+)", told, re.MULTILINE)
    return found[1].decode() if found else ""
