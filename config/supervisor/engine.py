"""The embedded ClickHouse engine; each start gets a new loopback port and password."""

from __future__ import annotations

from pathlib import Path

from config.supervisor import polling, run_files
from config.supervisor.children import Service
from config.supervisor.processes import Program, command


class AnalyticsEngine(Service):
    """Writes the engine's address and password to `clickhouse.url` in `run_dir`, which only this user can read; neither
    a command line nor an environment holds the password."""

    role = "engine"
    is_vital = False

    def __init__(self, *, data_dir: Path, memory_limit: int, run_dir: Path, niceness: int) -> None:
        self.niceness = niceness
        self._data_dir = data_dir
        self._memory_limit = memory_limit
        self._url_file = run_dir / "clickhouse.url"

    def program(self) -> Program:
        self._url_file.unlink(missing_ok=True)
        options = {"data": self._data_dir, "memory-limit": self._memory_limit, "url-file": self._url_file}
        words = (word for name, value in options.items() for word in (f"--{name}", str(value)))
        return command("analytics_engine", *words)

    async def ready(self) -> None:
        await polling.until(self._announced)

    async def _announced(self) -> bool:
        return run_files.read(self._url_file) is not None

    def ended(self) -> None:
        # The file is removed with the engine: another program on its port must get neither password nor records.
        self._url_file.unlink(missing_ok=True)
