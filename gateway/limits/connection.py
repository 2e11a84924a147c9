"""One connection to Redis for all requests of a worker: what is asked in one turn of the loop is sent in one write.

redis-py connects and reads (addresses, TLS, authentication, RESP); its own commands wait for one answer each, which
costs several times what the script takes.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import hiredis
import redis
import redis.asyncio

from gateway.limits.scripts import Script

logger = logging.getLogger("gateway.limits")

_RECONNECT_SECONDS = 0.5
# A loop that is late by so much is what kept the answer waiting, and for no longer than so long.
_LATE_SECONDS = 0.01
_LONGEST_SECONDS = 1.0

Argument = bytes | str | int
Unclaimed = Callable[[Any], None]
# Its stub knows tuples of one member only.
_pack: Callable[[tuple[Argument, ...]], bytes] = hiredis.pack_command  # type: ignore[assignment]


class RedisAwayError(Exception):
    """Redis does not answer in time, or there is no connection."""


class _Asked:
    """A command on its way: who waits for it and since when, and what it is, for a server that lost the script."""

    __slots__ = ("answer", "script", "sent_at", "tail", "unclaimed")

    def __init__(
        self,
        answer: asyncio.Future[Any],
        sent_at: float,
        script: Script,
        tail: tuple[Argument, ...],
        unclaimed: Unclaimed | None,
    ) -> None:
        self.answer = answer
        self.unclaimed = unclaimed
        self.sent_at = sent_at
        self.script = script
        self.tail = tail


class ScriptConnection:
    """Runs scripts. While Redis is away every call fails at once, and one line in the log says so; `on_return` is
    called when it is there, the first time included. Belongs to one event loop."""

    def __init__(self, url: str, *, patience: float, on_return: Callable[[], None]) -> None:
        """`patience`: seconds to wait for an answer before Redis counts as away."""
        self._pool = redis.asyncio.ConnectionPool.from_url(
            url, socket_connect_timeout=1, socket_timeout=None, retry=None, health_check_interval=0
        )
        self._patience = patience
        self._on_return = on_return
        self._loop = asyncio.get_running_loop()
        self._run_id = ""
        self._open = False
        self._closed = False
        self._was_away = False
        self._waiting: deque[_Asked] = deque()
        self._outbox: list[bytes] = []
        self._news = asyncio.Event()
        self._watch: asyncio.TimerHandle | None = None
        self._connection: Any = None
        self._task = self._loop.create_task(self._live(), name="gateway.limits")

    @property
    def is_open(self) -> bool:
        return self._open

    @property
    def run_id(self) -> str:
        """Which start of which server is asked: one that was started again may have forgotten what it was told last."""
        return self._run_id

    def run(
        self, script: Script, keys: Sequence[str], arguments: Sequence[Argument], unclaimed: Unclaimed | None = None
    ) -> asyncio.Future[Any]:
        """What the script will have returned. The future fails with RedisAwayError, or with redis.ResponseError when
        the script itself does. `unclaimed` gets what it returned for a caller who has been cancelled meanwhile.
        Raises RedisAwayError at once while there is no connection."""
        if not self._open:
            raise RedisAwayError
        tail = (len(keys), *keys, *arguments)
        asked = _Asked(self._loop.create_future(), self._loop.time(), script, tail, unclaimed)
        self._send(_pack(("EVALSHA", script.sha, *asked.tail)), asked)
        return asked.answer

    async def close(self) -> None:
        self._closed = True
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await self._pool.aclose()

    def _send(self, packed: bytes, asked: _Asked) -> None:
        self._outbox.append(packed)
        self._waiting.append(asked)
        self._news.set()
        if self._watch is None:
            self._watch = self._loop.call_later(self._patience, self._look)

    def _look(self) -> None:
        """One timer for all: it looks at the command that waits the longest."""
        watch, self._watch = self._watch, None
        if not self._waiting:
            return
        now = self._loop.time()
        sent_at = self._waiting[0].sent_at
        left = sent_at + self._patience - now
        late = 0.0 if watch is None else now - watch.when()
        if left > 0:
            self._watch = self._loop.call_later(left, self._look)
        elif late > _LATE_SECONDS and now - sent_at < _LONGEST_SECONDS:
            self._watch = self._loop.call_later(self._patience, self._look)
        else:
            self._lose("it does not answer")

    async def _live(self) -> None:
        # A cancellation that meets a failure of the connection is lost in the group of failures.
        while not self._closed:
            try:
                connection = await self._connect()
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._write(connection))
                    tasks.create_task(self._read(connection))
            except* Exception as errors:
                # Whatever it was: without this task Redis would be away for as long as the worker lives.
                self._lose(type(errors.exceptions[0]).__name__)
            if not self._closed:
                await asyncio.sleep(_RECONNECT_SECONDS)

    async def _connect(self) -> Any:
        connection: Any = self._pool.make_connection()  # type: ignore[no-untyped-call]
        self._connection = connection
        async with asyncio.timeout(1):
            await connection.connect()
            # A server that is paused takes connections and does not answer.
            await connection.send_command("PING", check_health=False)
            await connection.read_response()
            self._run_id = await _run_id(connection)
        self._outbox.clear()
        self._open = True
        if self._was_away:
            logger.warning("redis.back")
        self._was_away = False
        self._on_return()
        return connection

    async def _write(self, connection: Any) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            packed, self._outbox = self._outbox, []
            await connection.send_packed_command(packed, check_health=False)

    async def _read(self, connection: Any) -> None:
        while True:
            try:
                answer = await connection.read_response(timeout=math.inf, disable_decoding=True)
                failure = None
            except redis.ResponseError as error:
                answer, failure = None, error
            if connection is not self._connection:
                raise RedisAwayError  # it came too late: nobody waits for it any more
            asked = self._waiting.popleft()
            if failure is not None:
                self._failed(asked, failure)
            elif not asked.answer.done():
                asked.answer.set_result(answer)
            elif asked.unclaimed is not None:
                asked.unclaimed(answer)

    def _failed(self, asked: _Asked, error: redis.ResponseError) -> None:
        if asked.answer.done():
            return
        if isinstance(error, redis.exceptions.NoScriptError):
            self._send(_pack(("EVAL", asked.script.text, *asked.tail)), asked)
        else:
            asked.answer.set_exception(error)

    def _lose(self, reason: str) -> None:
        """Ends the connection and everything that waits for it."""
        self._open = False
        if not self._was_away:
            self._was_away = True
            logger.warning("redis.away reason=%s", reason)
        waiting, self._waiting = self._waiting, deque()
        for asked in waiting:
            if not asked.answer.done():
                asked.answer.set_exception(RedisAwayError())
                asked.answer.exception()  # nobody may be waiting any more
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._loop.create_task(connection.disconnect(nowait=True))


async def _run_id(connection: Any) -> str:
    await connection.send_command("INFO", "server", check_health=False)
    try:
        told = await connection.read_response(disable_decoding=True)
    except redis.ResponseError:
        return ""  # it may be forbidden
    found = re.search(rb"^run_id:(\w+)", told, re.MULTILINE)
    return found[1].decode() if found else ""
