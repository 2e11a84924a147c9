"""A place with stores of its own, whose processes a test may kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pytest_django import Settings

from analytics.clickhouse import client
from tests.analytics.engine_process import ROOT, EngineProcess

P = TypeVar("P", bound="Place")


class Place:
    """A VAR_DIR with an engine of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "run").mkdir(parents=True)
        self.engine = self._start_engine()

    def kill_engine(self) -> None:
        self.engine.stop(signal.SIGKILL)
        self.engine = self._start_engine()

    def close(self) -> None:
        self.engine.stop()

    def _start_engine(self) -> EngineProcess:
        return EngineProcess(self.directory / "run" / "clickhouse").wait_until_serving()


class ShippingPlace(Place):
    """A place with a shipper."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.shipper = self.start_shipper()

    def start_shipper(self, *arguments: str) -> subprocess.Popen[bytes]:
        return self._start("ship_records", *arguments)

    def kill_shipper(self) -> None:
        self._end_shipper()
        self.shipper = self.start_shipper()

    def close(self) -> None:
        self._end_shipper()
        super().close()

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "VAR_DIR": str(self.directory)}
        environment.pop("CLICKHOUSE_URL", None)
        words = [sys.executable, str(ROOT / "manage.py"), *command]
        with (self.directory / "shipper.log").open("ab") as log:
            return subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=log)

    def _end_shipper(self) -> None:
        self.shipper.kill()
        self.shipper.wait()


class InsertingPlace(ShippingPlace):
    """A place with a shipper and an inserter."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.inserter = self._start("insert_batches")

    def kill_inserter(self) -> None:
        self._end_inserter()
        self.inserter = self._start("insert_batches")

    def close(self) -> None:
        self._end_inserter()
        super().close()

    def _end_inserter(self) -> None:
        self.inserter.kill()
        self.inserter.wait()


@contextmanager
def place_in(directory: Path, settings: Settings, kind: type[P]) -> Iterator[P]:
    """Makes a place, whose store `client` reaches meanwhile. It has no tables yet."""
    settings.VAR_DIR = directory
    settings.RUN_DIR = directory / "run"
    settings.CLICKHOUSE_URL = None
    client.close()
    place = kind(directory)
    try:
        yield place
    finally:
        place.close()
        client.close()
