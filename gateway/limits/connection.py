"""What the limiter asks of Redis, be it one server (`server`) or a cluster (`cluster`)."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from gateway.limits.channel import AwaitedCommand, Command
from gateway.limits.scripts import Argument, Script, packed

logger = logging.getLogger("gateway.limits")


class Connection(ABC):
    """Runs scripts. While Redis is away every call fails at once, and one log line reports it. The object belongs to
    one event loop."""

    _loop: asyncio.AbstractEventLoop

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """True if Redis is reached, a cluster with all of its primaries."""

    @abstractmethod
    def reaches(self, project: str) -> bool:
        """Returns whether the server that holds the project's keys is reached."""

    @abstractmethod
    async def tried(self) -> None:
        """Waits until the first attempt to connect has succeeded or failed."""

    @abstractmethod
    def ask(self, command: Command) -> None:
        """Sends a command. Raises RedisAwayError at once while there is no connection; neither callback is called
        then."""

    def run(
        self, project: str, script: Script, keys: Sequence[str], arguments: Sequence[Argument]
    ) -> asyncio.Future[Any]:
        """Returns the future of a script's result. It fails with RedisAwayError, or with redis.ResponseError when the
        script fails. Raises RedisAwayError at once while there is no connection."""
        words = (len(keys), *keys, *arguments)
        command = AwaitedCommand(project, script, script.begun(len(words)) + packed(words), self._loop)
        self.ask(command)
        return command.answer

    @abstractmethod
    async def answered(self) -> None:
        """Returns when Redis has answered all commands, or is away."""

    @abstractmethod
    def leave(self, reason: str) -> None:
        """Gives up the connection and makes a new one, which may lead to another server."""

    @abstractmethod
    async def close(self) -> None: ...


class Outage:
    """Logs that Redis is away and that it is back, once each. `is_over` is asked before the latter."""

    def __init__(self, is_over: Callable[[], bool]) -> None:
        self._is_over = is_over
        self._is_away = False

    def begin(self, reason: str) -> None:
        if not self._is_away:
            self._is_away = True
            logger.warning("redis.away reason=%s", reason)

    def end(self) -> None:
        if self._is_away and self._is_over():
            self._is_away = False
            logger.warning("redis.back")
