from __future__ import annotations

import os
import secrets
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from analytics.clickhouse.engine.lock import DirectoryLockedError
from analytics.clickhouse.engine.server import EngineServer, ServerOptions
from analytics.clickhouse.engine.session import Access

_EXIT_LOCKED = 75


class Command(BaseCommand):
    help = "Serve the embedded ClickHouse over its native protocol on 127.0.0.1 until SIGTERM."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, required=True, help="directory of the tables")
        parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
        parser.add_argument("--port-file", type=Path, help="written with the port as soon as the engine serves")
        parser.add_argument(
            "--url-file", type=Path, help="written with the clickhouse:// address, the only place of its password"
        )
        parser.add_argument("--memory-limit", type=int, default=settings.CLICKHOUSE_ENGINE_BYTES, help="bytes")

    def handle(self, *args: Any, **options: Any) -> None:
        access = Access(
            user=os.environ.get("ANALYTICS_ENGINE_USER", "") or "default",
            # Each start makes a new password, so that a password of an earlier engine is of no use.
            password=os.environ.get("ANALYTICS_ENGINE_PASSWORD", "") or secrets.token_urlsafe(32),
            database=settings.CLICKHOUSE_DATABASE,
        )
        server = EngineServer(
            ServerOptions(
                directory=options["data"],
                backups=settings.CLICKHOUSE_BACKUP_DIR or settings.VAR_DIR / "backups",
                port=options["port"],
                port_file=options["port_file"],
                url_file=options["url_file"],
                memory_limit=options["memory_limit"],
                access=access,
            )
        )
        try:
            server.serve()
        except DirectoryLockedError as error:
            raise CommandError(str(error), returncode=_EXIT_LOCKED) from error
        except ImportError as error:
            raise CommandError("The embedded engine needs the package chdb-core; or set CLICKHOUSE_URL.") from error
