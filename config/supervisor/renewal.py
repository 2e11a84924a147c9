"""Reads secrets again on SIGHUP, and has them used by all processes of `serve` without a lost request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from config import env, secrets_reload
from config.supervisor.background_thread import in_background
from config.supervisor.children import StartError
from config.supervisor.output import forward_lines
from config.supervisor.processes import Processes, Program
from core.processes.background_tasks import watch

logger = logging.getLogger("config.supervisor")


class Renewal:
    """`begin` reads all variables that files or commands give. If one has changed, `replace` is awaited, after which no
    process has the former values. If one cannot be read, or no process starts with it, all goes on with them."""

    def __init__(self, processes: Processes, replace: Callable[[], Awaitable[None]]) -> None:
        self._processes = processes
        self._replace = replace
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        task = asyncio.create_task(self._renew())
        self._tasks.add(task)
        watch(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """Breaks off what is under way, before the service stops."""
        for task in list(self._tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _renew(self) -> None:
        async with self._turn:
            try:
                values = await in_background(env.read_again)
                former = secrets_reload.apply(values)
            except env.InvalidVariable as error:
                logger.error("secrets.not_read reason=%s", error)
                return
            names = ",".join(sorted(values)) or "none"
            logger.info("secrets.read changed=%s", names)
            if not values:
                return
            await self._processes.give_secrets(values)
            try:
                await self._try()
                await self._replace()
            except StartError as error:
                logger.error("secrets.not_in_use changed=%s reason=%s", names, error)
                secrets_reload.apply(former)
                await self._processes.give_secrets(former)
                return
            logger.info("secrets.in_use changed=%s", names)

    async def _try(self) -> None:
        """Raises StartError when a process with the new values finds that it cannot work with them."""
        process = await self._processes.start("secrets", Program((), "config.supervisor.secrets_probe:main"))
        output = asyncio.create_task(forward_lines(process.output, "secrets"))
        code = await process.wait()
        await output
        if code:
            raise StartError(f"a process that tried them ended with exit code {code}")
