"""Children without an address: ready as soon as they run."""

from __future__ import annotations

import sys
from pathlib import Path

from typing_extensions import override

from config.supervisor.children import Service


class Shipper(Service):
    role = "shipper"
    stop_seconds = 30.0

    @override
    def command(self) -> list[str]:
        return [sys.executable, "manage.py", "ship_records"]


class CeleryWorker(Service):
    role = "celery"
    stop_seconds = 15.0

    def __init__(self, *, var_dir: Path) -> None:
        self._schedule_file = var_dir / "celery" / "beat-schedule"

    @override
    def command(self) -> list[str]:
        self._schedule_file.parent.mkdir(parents=True, exist_ok=True)
        return [sys.executable, "-m", "config.supervisor.celery_worker", str(self._schedule_file)]
