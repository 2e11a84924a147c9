from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings

from analytics.trace_export.need import wait_until_needed
from config.monitor.hosts import Presence
from config.monitor.run import HostMonitor
from config.monitor.subjects import children_subject
from config.supervisor import preparation, run_files, web
from config.supervisor.analytics import AnalyticsPreparation
from config.supervisor.background import CeleryWorker, Exporter, Inserter, Shipper
from config.supervisor.background_thread import in_background
from config.supervisor.children import Child, Service, StartError, all_started
from config.supervisor.engine import AnalyticsEngine
from config.supervisor.processes import Processes
from config.supervisor.redis import RedisServer
from config.supervisor.renewal import Renewal
from config.supervisor.replacement import Replacement
from config.supervisor.sandbox import Sandbox
from core.processes.background_tasks import keep_running

logger = logging.getLogger("config.supervisor")

_LEAVE_SECONDS = 3.0
# What is imported while the stores are prepared, on another processor, before the processes that share it are forked.
IMPORTED = (
    "config.asgi",
    "config.supervisor.web_worker",
    "config.supervisor.celery_worker",
    "analytics.management.commands.ship_records",
    "analytics.management.commands.export_traces",
    "analytics.management.commands.insert_batches",
    "integrations.management.commands.sandbox",
)


class Supervisor:
    """`requests` leads to the fork server. `announce(base_url)` is called once the gateway serves. `without` names
    parts that run elsewhere; `migrate` False only checks the tables."""

    def __init__(
        self,
        requests: socket.socket,
        listening: socket.socket,
        announce: Callable[[str], None],
        *,
        without: frozenset[str],
        migrate: bool,
    ) -> None:
        self._processes = Processes(requests, self._on_stop_signal, self._on_hangup)
        self._listening = listening
        self._announce = announce
        self._without = without
        self._migrate = migrate
        self._base_url = web.base_url(listening)
        self._run_dir: Path = settings.RUN_DIR
        self._stop = asyncio.Event()
        self._force = asyncio.Event()
        # Closing the second end of the pipe notifies all web workers, later ones included, of the coming stop.
        self._prestop_seen, self._prestop = os.pipe()
        # The groups are in the order of stopping: each group has ended before the next one is stopped.
        self._web: list[Child] = []
        self._shipper: list[Child] = []
        self._inserter: list[Child] = []
        self._exporter: list[Child] = []
        self._celery: list[Child] = []
        self._stores: list[Child] = []
        self._redis: list[Child] = []
        replacement = Replacement(
            self._web,
            lambda: (*self._shipper, *self._inserter, *self._exporter, *self._celery),
            lambda service: self._launch(service, self._web),
            self._force,
        )
        self._renewal = Renewal(self._processes, replacement)
        self._analytics = AnalyticsPreparation(migrate=migrate)
        self._sql_prepared = asyncio.Event()
        self._sandbox: Sandbox | None = None
        self._exporting: asyncio.Task[None] | None = None
        self._presence = Presence(self._children)
        self._monitor = HostMonitor(
            children_subject(self._children), self._analytics.subject(), self._presence.subject()
        )

    async def run(self) -> None:
        """Runs until SIGTERM or SIGINT. A second signal cuts the wait of PRESTOP_SECONDS short, or the drain after it.

        Raises StartError if a vital child fails to start, and CommandError for stores that waiting cannot make fit.
        """
        try:
            await self._unless_stopped(self._start())
            await self._stop.wait()
        finally:
            await self._shut_down()

    def _on_stop_signal(self) -> None:
        (self._force if self._stop.is_set() else self._stop).set()

    def _on_hangup(self) -> None:
        if os.isatty(0):
            self._on_stop_signal()  # The terminal in which `serve` was started is gone.
        else:
            self._renewal.begin()

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> None:
        starting = asyncio.create_task(work)
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if starting.done():
            starting.result()
            return
        starting.cancel()
        await asyncio.wait({starting})

    async def _start(self) -> None:
        self._show_figures()
        may_have_store = bool(settings.CLICKHOUSE_URL) or self._engine_dir.exists()
        if settings.REDIS_IS_EMBEDDED:
            self._launch(self._embedded_redis(), self._redis)
        engines = [] if settings.CLICKHOUSE_URL else [self._launch(self._engine(), self._stores)]
        if settings.SANDBOX:
            self._offer_sandbox()
        shipping = asyncio.create_task(self._start_shipper(engines))
        try:
            await self._prepare(engines, may_have_store=may_have_store)
            await self._start_web()
            self._monitor.start()
            run_files.write(self._run_dir / "gateway.url", self._base_url)
            self._announce(self._base_url)
            if "exporter" not in self._without:
                self._exporting = keep_running("supervisor.exporter", self._start_exporter)
            # Celery starts last, because no other process waits for it and it would slow down the start.
            if "celery" not in self._without:
                self._launch(CeleryWorker(), self._celery)
            await shipping
        finally:
            shipping.cancel()

    async def _prepare(self, engines: list[Child], *, may_have_store: bool) -> None:
        looking = self._analytics.look(engine.started for engine in engines) if may_have_store else asyncio.sleep(0)
        # The wait has no time limit, because another host's migration may take long.
        preparing = preparation.prepare(
            self._processes, self._base_url, migrate=self._migrate, looking=looking, modules=IMPORTED
        )
        await asyncio.gather(all_started(self._redis), preparing)
        self._sql_prepared.set()

    async def _start_web(self) -> None:
        for number in range(1, settings.WEB_WORKERS + 1):
            worker = web.WebWorker(number, self._listening, self._prestop_seen, drain_seconds=settings.DRAIN_SECONDS)
            self._launch(worker, self._web)
        await all_started(self._web)

    async def _start_shipper(self, engines: list[Child]) -> None:
        """Starts the shipper once the analytics store has its tables, which are made once the SQL database is known to
        fit. Nothing else waits for either."""
        await self._sql_prepared.wait()
        await asyncio.gather(*(asyncio.shield(engine.started) for engine in engines))
        await self._analytics.prepare()
        if settings.INSERTER:
            self._launch(Inserter(niceness=settings.BACKGROUND_NICENESS), self._inserter)
        if "shipper" not in self._without:
            self._launch(Shipper(spool_dir=settings.SPOOL_DIR, niceness=settings.BACKGROUND_NICENESS), self._shipper)

    async def _start_exporter(self) -> None:
        """A collector that answers slowly must not hold up the shipper, so this is a process of its own, where there is
        anything to export."""
        await in_background(partial(wait_until_needed, settings.SPOOL_DIR))
        self._launch(Exporter(niceness=settings.BACKGROUND_NICENESS), self._exporter)

    def _show_figures(self) -> None:
        try:
            url = self._monitor.listen()
        except OSError as error:
            address = f"METRICS_HOST {settings.METRICS_HOST}, METRICS_PORT {settings.METRICS_PORT}"
            raise StartError(f"{address}: {error.strerror}") from error
        if url is not None:
            run_files.write(self._run_dir / "metrics.url", url)

    def _children(self) -> dict[str, tuple[bool, int]]:
        groups = (self._web, self._shipper, self._inserter, self._exporter, self._celery, self._stores, self._redis)
        return {child.service.role: (child.is_up, child.restarts) for group in groups for child in group}

    @property
    def _engine_dir(self) -> Path:
        folder: Path = settings.VAR_DIR / "clickhouse"
        return folder

    def _embedded_redis(self) -> Service:
        data = settings.VAR_DIR / "redis"
        return RedisServer(url=settings.EMBEDDED_REDIS_URL, data_dir=data, run_dir=self._run_dir)

    def _engine(self) -> Service:
        data, limit = self._engine_dir, settings.CLICKHOUSE_ENGINE_BYTES
        niceness = settings.BACKGROUND_NICENESS
        return AnalyticsEngine(data_dir=data, memory_limit=limit, run_dir=self._run_dir, niceness=niceness)

    def _offer_sandbox(self) -> None:
        self._sandbox = service = Sandbox()
        service.on_first_client(partial(self._launch, service, self._stores))
        run_files.write(self._run_dir / "sandbox.url", service.url)

    def _launch(self, service: Service, group: list[Child]) -> Child:
        child = Child(service, self._processes, run_dir=self._run_dir)
        group.append(child)
        child.launch()
        return child

    async def _shut_down(self) -> None:
        logger.info(
            "service.stopping prestop_seconds=%d drain_seconds=%d", settings.PRESTOP_SECONDS, settings.DRAIN_SECONDS
        )
        await self._renewal.end()
        await self._be_left_out()
        self._listening.close()
        if self._exporting is not None:
            self._exporting.cancel()
        await self._stop_in_order(self._web, self._shipper, self._inserter, self._exporter, self._celery)
        # The monitor stops before the stores, so that it reports no outage of theirs.
        await asyncio.to_thread(self._monitor.stop)
        await self._leave()
        if self._sandbox is not None:
            self._sandbox.close()
        await self._stop_in_order(self._stores, self._redis)
        self._processes.close()
        run_files.remove_all(self._run_dir)
        logger.info("service.stopped")

    async def _stop_in_order(self, *groups: list[Child]) -> None:
        for group in groups:
            await asyncio.gather(*(child.stop(force=self._force) for child in group))

    async def _leave(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(in_background(self._presence.leave), _LEAVE_SECONDS)

    async def _be_left_out(self) -> None:
        """Answers 503 on `/readyz` for PRESTOP_SECONDS while serving, so that load balancers leave this host out."""
        os.close(self._prestop)
        if self._stop.is_set() and settings.PRESTOP_SECONDS and all(child.started.done() for child in self._web):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._force.wait(), settings.PRESTOP_SECONDS)
            # A signal that ended the wait of PRESTOP_SECONDS does not also cut the drain of streams short.
            self._force.clear()
