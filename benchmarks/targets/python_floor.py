"""A Python proxy that parses and decodes all that a gateway passes on, and does nothing else (`relay.py`)."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from typing import ClassVar

from benchmarks import processes
from benchmarks.targets.base import Endpoint, Target


class PythonFloor(Target):
    name: ClassVar[str] = "python-floor"
    label: ClassVar[str] = "floor in Python: protocols alone"

    def version(self) -> str:
        return platform.python_version()

    def start(self, mock_port: int) -> Endpoint:
        port = processes.free_port()
        command = [sys.executable, str(Path(__file__).with_name("relay.py")), str(port), str(mock_port)]
        self._launch(command, f"http://127.0.0.1:{port}/")
        return Endpoint(port)
