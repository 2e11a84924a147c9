"""TensorZero: the Rust gateway that its Python wheel carries, with observability off."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import ClassVar

from benchmarks import processes
from benchmarks.targets.base import Endpoint, PythonPeer

_CONFIG = """
[gateway]
observability.enabled = false
disable_pseudonymous_usage_analytics = true

[models.mock]
routing = ["mock"]

[models.mock.providers.mock]
type = "openai"
model_name = "mock"
api_base = "http://127.0.0.1:{mock_port}/v1/"
api_key_location = "env::MOCK_API_KEY"
"""


class TensorZero(PythonPeer):
    name: ClassVar[str] = "tensorzero"
    label: ClassVar[str] = "TensorZero (Rust)"
    requirement: ClassVar[str] = "tensorzero==2026.6.0"
    distribution: ClassVar[str] = "tensorzero"

    def start(self, mock_port: int) -> Endpoint:
        self.workspace.mkdir(parents=True, exist_ok=True)
        config = self.workspace / "tensorzero.toml"
        config.write_text(_CONFIG.format(mock_port=mock_port))
        command = [
            str(self.folder / "bin" / "python"),
            # Without this option the file beside the script would be imported in place of the package.
            "-P",
            str(Path(__file__).with_name("tensorzero_serve.py")),
            str(config),
        ]
        # The gateway has one core: without the variable its runtime starts a thread per core of the machine.
        environment = {"MOCK_API_KEY": "sk-mock", "TOKIO_WORKER_THREADS": "1"}
        self.process = processes.start(command, log=self.log, environment=environment, folder=self.workspace)
        port = self._port()
        processes.wait_ready(self.process, f"http://127.0.0.1:{port}/health", log=self.log)
        return Endpoint(port, "/openai/v1/chat/completions", "tensorzero::model_name::mock")

    def _port(self) -> int:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process is not None and self.process.poll() is None:
            found = re.search(r"listening http://[^:]+:(\d+)", self.log.read_text(errors="replace"))
            if found:
                return int(found.group(1))
            time.sleep(0.1)
        raise RuntimeError(f"did not start: {self.log.read_text(errors='replace')[-300:]}")
