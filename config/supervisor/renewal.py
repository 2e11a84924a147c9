"""Reads secrets again on SIGHUP, and has all processes of `serve` use them without losing a request."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from config import env, secrets_reload
from config.supervisor.background_thread import in_background
from config.supervisor.children import StartError
from config.supervisor.output import forward_lines
from config.supervisor.processes import Processes, Program
from config.supervisor.replacement import Replacement
from core.processes.background_tasks import watch

logger = logging.getLogger("config.supervisor")


class Renewal:
    """`begin` reads all variables given by files or commands, and if one has changed replaces all processes. If a
    variable cannot be read, or a process does not start with it, all keep or get back the former values: the processes
    never stay divided."""

    def __init__(self, processes: Processes, replacement: Replacement) -> None:
        self._processes = processes
        self._replacement = replacement
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        task = asyncio.create_task(self._renew())
        self._tasks.add(task)
        watch(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
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
            before = self._replacement.restarts()
            await self._processes.give_secrets(values)
            try:
                await self._try()
                await self._replacement.replace()
            except StartError as error:
                secrets_reload.apply(former)
                await self._processes.give_secrets(former)
                await self._replacement.replace_back(before)
                logger.error("secrets.not_in_use changed=%s reason=%s", names, error)
                return
            logger.info("secrets.in_use changed=%s", names)

    async def _try(self) -> None:
        process = await self._processes.start("secrets", Program((), "config.supervisor.secrets_probe:main"))
        output = asyncio.create_task(forward_lines(process.output, "secrets"))
        code = await process.wait()
        await output
        if code:
            raise StartError(f"a process that tried them ended with exit code {code}")
