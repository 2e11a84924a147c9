"""The exporter as a process that a test may kill, on a spool and the database of the test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from django.db import connection

from analytics.request_log.record import SpoolEntry
from analytics.shipper.loop import Shipper
from analytics.spool.writer import SpoolWriter
from tests.analytics.engine_process import ROOT
from tests.waiting import TIMEOUT_SECONDS


class ExporterProcess:
    """A running `manage.py export_traces`; `close` kills it."""

    def __init__(self, spool: Path) -> None:
        self._spool = spool
        self.log = spool.with_name("exporter.log")
        self._process = self._start()

    def kill(self) -> None:
        """Kills it by SIGKILL, from any thread."""
        self._process.kill()

    def restart(self) -> None:
        self._process.kill()
        self._process.wait()
        self._process = self._start()

    def stop(self) -> int:
        """Sends SIGTERM; returns the exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(TIMEOUT_SECONDS)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        database = connection.settings_dict
        environment = {
            **os.environ,
            "SPOOL_DIR": str(self._spool),
            "DATABASE_URL": f"postgresql://postgres@/{database['NAME']}?host={database['HOST']}",
            "HOST_NAME": "host-of-test",
        }
        with self.log.open("ab") as log:
            command = [sys.executable, str(ROOT / "manage.py"), "export_traces"]
            return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=log)


def ship(spool: Path, *entries: SpoolEntry) -> None:
    """Has the shipper hand over records, as soon as the store has them; the store is none here."""
    writer = SpoolWriter(spool)
    for entry in entries:
        writer.append(entry)
    writer.close()
    shipper = Shipper(spool, insert=lambda rows, token: None, lock_seconds=TIMEOUT_SECONDS)
    shipper.drain()
    shipper.close()
