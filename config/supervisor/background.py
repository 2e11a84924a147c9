from __future__ import annotations

from pathlib import Path

from config.supervisor import polling
from config.supervisor.children import Service
from config.supervisor.processes import Program, command


class Shipper(Service):
    role = "shipper"
    is_vital = False
    # The shipper gets no more time to stop: with the store unreachable, its records are safe in the spool.
    stop_seconds = 10.0

    def __init__(self, *, spool_dir: Path, niceness: int) -> None:
        self.niceness = niceness
        self._spool_dir = spool_dir

    def program(self) -> Program:
        return command("ship_records")

    async def finished(self) -> None:
        """Waits until the spool is empty: the shipper deletes a segment once it is complete and stored."""
        await polling.until(self._spool_is_empty)

    async def _spool_is_empty(self) -> bool:
        return not any(self._spool_dir.glob("*.seg"))


class Exporter(Service):
    role = "exporter"
    is_vital = False
    # A collector may take ten seconds to answer; what is not sent by then is safe on disk.
    stop_seconds = 15.0

    def __init__(self, *, niceness: int) -> None:
        self.niceness = niceness

    def program(self) -> Program:
        return command("export_traces")


class Inserter(Service):
    role = "inserter"
    is_vital = False

    def __init__(self, *, niceness: int) -> None:
        self.niceness = niceness

    def program(self) -> Program:
        return command("insert_batches")


class CeleryWorker(Service):
    role = "celery"
    is_vital = False
    stop_seconds = 15.0

    def program(self) -> Program:
        return Program([], "config.supervisor.celery_worker:main")
