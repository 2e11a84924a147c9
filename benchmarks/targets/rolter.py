from __future__ import annotations

from typing import ClassVar

from benchmarks import processes
from benchmarks.targets.base import Endpoint, PythonPeer

_KEY = "sk-benchmark-1234"
_CONFIG = """
[server]
host = "127.0.0.1"
port = {port}

[[providers.readonly]]
name = "mock"
kind = "openai_compatible"
api_base = "http://127.0.0.1:{mock_port}"

[[routes]]
model = "mock"
strategy = "round_robin"
[[routes.targets]]
provider = "mock"
model = "mock"

[[virtual_keys]]
key = "{key}"
name = "benchmark"
models = []

# By itself it asks a provider eight requests at once, and the scenarios have up to 1,024.
[queue]
enabled = false
"""


class Rolter(PythonPeer):
    name: ClassVar[str] = "rolter"
    label: ClassVar[str] = "Rolter (Rust)"
    requirement: ClassVar[str] = "rolter==0.1.0"
    distribution: ClassVar[str] = "rolter"

    def start(self, mock_port: int) -> Endpoint:
        self.workspace.mkdir(parents=True, exist_ok=True)
        config, port = self.workspace / "rolter.toml", processes.free_port()
        config.write_text(_CONFIG.format(port=port, mock_port=mock_port, key=_KEY))
        # It would ask for newer releases of itself. The gateway has one core.
        environment = {"ROLTER_UPDATE_CHECK": "false", "TOKIO_WORKER_THREADS": "1", "RUST_LOG": "error"}
        command = [str(self.folder / "bin" / "rolter"), "gateway", "--config", str(config)]
        self._launch(command, f"http://127.0.0.1:{port}/healthz", environment)
        return Endpoint(port, headers={"authorization": f"Bearer {_KEY}"})
