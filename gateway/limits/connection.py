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
    """Runs scripts. An instance belongs to one event loop.

    While Redis is down every call fails at once, and one log line reports it.
    """

    _loop: asyncio.AbstractEventLoop

    @property
    @abstractmethod
    def is_open(self) -> bool: ...

    @abstractmethod
    def reaches(self, project: str) -> bool: ...

    @abstractmethod
    async def tried(self) -> None: ...

    @abstractmethod
    def ask(self, command: Command) -> None:
        """Raises RedisAwayError at once if there is no connection; then no callback is called."""

    def run(
        self, project: str, script: Script, keys: Sequence[str], arguments: Sequence[Argument]
    ) -> asyncio.Future[Any]:
        words = (len(keys), *keys, *arguments)
        command = AwaitedCommand(project, script, script.begun(len(words)) + packed(words), self._loop)
        self.ask(command)
        return command.answer

    @abstractmethod
    async def answered(self) -> None: ...

    @abstractmethod
    def leave(self, reason: str) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...


class Outage:
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
