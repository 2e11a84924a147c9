from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser, OutputWrapper

from config import json_log
from config.supervisor import allocator, fork_server, lock, run_files, web
from config.supervisor.children import StartError
from config.supervisor.supervise import Supervisor
from core.processes.schema import import_migrations


class Command(BaseCommand):
    help = "Serve the gateway with all it needs: stores, web workers, shipper, exporter, Celery, sandbox provider."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--without",
            action="append",
            default=[],
            choices=["celery", "exporter", "shipper"],
            help="leave out a part that runs on its own",
        )
        parser.add_argument(
            "--no-migrate",
            action="store_true",
            help="change no tables: wait for whoever does, and refuse to start when migrations are missing then",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        # The data folder holds keys, prompts and a socket without a password, so only its owner may read it.
        os.umask(0o077)
        if json_log.IS_ON:
            # Whoever collects the log of a container reads both of its streams.
            sys.stdout = json_log.JsonLines(sys.stdout, logging.INFO)
            self.stdout = OutputWrapper(sys.stdout)
        allocator.return_freed_memory()
        import_migrations()
        listening = web.inherited()
        # Only the supervisor goes on from here; it opens whatever only one process may have.
        requests = fork_server.split()
        settings.RUN_DIR.mkdir(parents=True, exist_ok=True)
        try:
            with lock.only_one(settings.RUN_DIR / "serve.lock", pid=os.getppid()):
                self._serve(requests, listening, frozenset(options["without"]), migrate=not options["no_migrate"])
        except lock.AlreadyRunningError as error:
            address = run_files.read(settings.RUN_DIR / "gateway.url") or "an address it has not announced yet"
            raise CommandError(
                f"`manage.py serve` already runs on {settings.VAR_DIR} as process {error.pid}, at {address}."
            ) from error

    def _serve(
        self, requests: socket.socket, given: socket.socket | None, without: frozenset[str], *, migrate: bool
    ) -> None:
        run_files.remove_all(settings.RUN_DIR)
        try:
            listening = given or web.listen(settings.HOST, settings.PORT)
        except OSError as error:
            raise CommandError(f"HOST {settings.HOST}, PORT {settings.PORT}: {error.strerror}.") from error
        try:
            asyncio.run(_supervise(requests, listening, self._announce, without=without, migrate=migrate))
        except StartError as error:
            raise CommandError(f"The service did not start: {error}.") from error
        except OSError as error:
            place = error.filename or settings.VAR_DIR
            raise CommandError(f"The service did not start: {place}: {error.strerror}.") from error

    def _announce(self, base_url: str) -> None:
        self.stdout.write(f"Serving {base_url} (OpenAI base URL: {base_url}/api/gateway/v1)")
        self.stdout.flush()


async def _supervise(
    requests: socket.socket,
    listening: socket.socket,
    announce: Callable[[str], None],
    *,
    without: frozenset[str],
    migrate: bool,
) -> None:
    await Supervisor(requests, listening, announce, without=without, migrate=migrate).run()
