from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from config.supervisor import run_files
from config.supervisor.output import forward_lines
from config.supervisor.processes import Process, Processes, Program
from core.processes.background_tasks import keep_running

logger = logging.getLogger("config.supervisor")

# A child that ran for this many seconds is restarted at once; one that keeps dying waits longer each time.
_STABLE_SECONDS = 5.0
_FIRST_DELAY_SECONDS = 0.1
_MAX_DELAY_SECONDS = 10.0
_MAX_DOUBLINGS = 10
_ANNOUNCE_AGAIN_SECONDS = 0.5
_START_SECONDS = 120.0


class StartError(Exception):
    pass


class Service:
    """`role` names its log lines and VAR_DIR/run/<role>.pid; a higher `niceness` yields a scarce processor to the
    others, once the service is ready: a start may wait for it."""

    role: str = ""
    niceness: int = 0
    # Whether the service as a whole does not start when this part fails before it was ready; else it is started again.
    is_vital = True
    stop_seconds: float = 10.0

    def program(self) -> Program:
        raise NotImplementedError

    async def ready(self) -> None:
        """Returns once the service is ready and its address announced; cancelled when its process ends."""

    def ended(self) -> None:
        """Called when the service's process has ended for any reason, before it is restarted."""

    async def finished(self) -> None:
        """Returns once the service has no work left and may be stopped; cancelled after `stop_seconds`."""


class Child:
    def __init__(self, service: Service, processes: Processes, *, run_dir: Path) -> None:
        self.service = service
        self._processes = processes
        self.started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pid_file = run_dir / f"{service.role}.pid"
        self._process: Process | None = None
        self._stopping = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self.restarts = 0

    @property
    def is_up(self) -> bool:
        return self._process is not None and self._process.is_running

    def launch(self) -> None:
        self._keeper = keep_running(f"child.{self.service.role}", self._keep)

    async def stop(self, *, force: asyncio.Event) -> None:
        """Sends SIGTERM once the service has finished, then SIGKILL; each wait ends after the service's `stop_seconds`
        or when `force` is set. Never raises, so that the children after it are stopped too."""
        if self._keeper is None:
            return
        try:
            await self._wait_for(asyncio.create_task(self.service.finished()), force)
            self._stopping.set()
            if self._process is not None and self._process.is_running:
                self._process.terminate()
            await self._wait_for(asyncio.shield(self._keeper), force)
            if not self._keeper.done() and self._process is not None:
                logger.warning("child.killed role=%s pid=%d", self.service.role, self._process.pid)
                _kill_group(self._process.pid)
            await self._keeper
        except Exception as error:
            logger.error("child.stop_failed role=%s error=%s", self.service.role, _message(error))

    def restart(self) -> None:
        if self._process is not None and self._process.is_running:
            self._process.terminate()

    def hang_up(self) -> None:
        """Sends SIGHUP, which tells a web worker that another one has taken its place."""
        if self._process is not None and self._process.is_running:
            self._process.send(signal.SIGHUP)

    def announce(self) -> None:
        if self._process is not None and self._process.is_running:
            with suppress(OSError):
                run_files.write(self._pid_file, str(self._process.pid))

    async def _wait_for(self, event: asyncio.Future[None], force: asyncio.Event) -> None:
        forced = asyncio.create_task(force.wait())
        either: set[asyncio.Future[Any]] = {event, forced}
        await asyncio.wait(either, timeout=self.service.stop_seconds, return_when=asyncio.FIRST_COMPLETED)
        forced.cancel()
        event.cancel()
        if event.done() and not event.cancelled() and event.exception() is not None:
            logger.warning("child.wait_failed role=%s error=%s", self.service.role, _message(event.exception()))

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        failures = 0
        while not self._stopping.is_set():
            began = loop.time()
            try:
                code = await self._run_once()
                ended, message = f"exit_code={code}", f"ended with exit code {code}"
            except StartError as error:
                ended, message = f"error={error}", f"could not be started: {error}"
            except Exception as error:
                # Any failure, such as a full disk, is retried: no other task would restart the child.
                ended, message = f"error={_message(error)}", f"could not be started: {_message(error)}"
            if self._stopping.is_set():
                break
            if not self.started.done() and self.service.is_vital:
                self.started.set_exception(StartError(f"{self.service.role} {message}"))
                return
            self.restarts += 1
            failures = 0 if loop.time() - began > _STABLE_SECONDS else failures + 1
            delay = min(_MAX_DELAY_SECONDS, _FIRST_DELAY_SECONDS * 2 ** min(failures, _MAX_DOUBLINGS))
            logger.warning("child.restarted role=%s %s after_seconds=%.1f", self.service.role, ended, delay)
            await self._pause(delay)
        if not self.started.done():
            self.started.cancel()

    async def _run_once(self) -> int:
        process = self._process = await self._processes.start(self.service.role, self.service.program())
        if self._stopping.is_set():  # The child was asked to stop while it was being started.
            process.terminate()
        role = self.service.role
        watching = keep_running(f"child.{role}.readiness", partial(self._watch_readiness, process))
        output = keep_running(f"child.{role}.output", partial(forward_lines, process.output, role))
        try:
            code = await process.wait()
        finally:
            watching.cancel()
            # The child's own children must neither run beside its successor nor keep its output open.
            _kill_group(process.pid)
            with suppress(OSError):
                self._remove_pid(process.pid)
            self.service.ended()
        await output
        return code

    async def _watch_readiness(self, process: Process) -> None:
        await self._once_there_is_room(lambda: self._write_pid(process.pid))
        await self._once_there_is_room(self.service.ready)
        if self.service.niceness:
            process.yield_to_others(self.service.niceness)
        if not self.started.done():
            self.started.set_result(None)

    def _remove_pid(self, pid: int) -> None:
        """Keeps the file of a successor that was started before this process ended."""
        if run_files.read(self._pid_file) == str(pid):
            self._pid_file.unlink(missing_ok=True)

    async def _write_pid(self, pid: int) -> None:
        run_files.write(self._pid_file, str(pid))

    async def _once_there_is_room(self, write: Callable[[], Awaitable[None]]) -> None:
        failed = False
        while True:
            try:
                await write()
            except OSError as error:
                if not failed:
                    logger.warning("child.not_announced role=%s error=%s", self.service.role, _message(error))
                failed = True
                await asyncio.sleep(_ANNOUNCE_AGAIN_SECONDS)
            else:
                return

    async def _pause(self, seconds: float) -> None:
        waiting = asyncio.create_task(self._stopping.wait())
        await asyncio.wait({waiting}, timeout=seconds)
        waiting.cancel()


async def all_started(children: list[Child]) -> None:
    """Raises StartError if a child fails or is not ready in time."""
    try:
        async with asyncio.timeout(_START_SECONDS):
            await asyncio.gather(*(asyncio.shield(child.started) for child in children))
    except TimeoutError:
        late = ", ".join(child.service.role for child in children if not child.started.done())
        raise StartError(f"{late} not ready within {_START_SECONDS:.0f} seconds") from None


def _message(error: BaseException | None) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
