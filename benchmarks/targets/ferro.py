from __future__ import annotations

from typing import ClassVar

from benchmarks import processes
from benchmarks.targets.base import Endpoint, PythonPeer

_KEY = "fgw_0123456789abcdef0123456789abcdef"
# It serves names of its own catalog only.
_MODEL = "gpt-4o-mini"
_CONFIG = """
strategy:
  mode: single
targets:
  - virtual_key: openai
"""


class Ferro(PythonPeer):
    name: ClassVar[str] = "ferro"
    label: ClassVar[str] = "Ferro (Go)"
    requirement: ClassVar[str] = "ferrogw==1.5.10"
    distribution: ClassVar[str] = "ferrogw"

    def start(self, mock_port: int) -> Endpoint:
        self.workspace.mkdir(parents=True, exist_ok=True)
        config, port = self.workspace / "config.yaml", processes.free_port()
        config.write_text(_CONFIG)
        environment = {
            "GATEWAY_CONFIG": str(config),
            "PORT": str(port),
            "MASTER_KEY": _KEY,
            "OPENAI_API_KEY": "sk-mock",
            "OPENAI_BASE_URL": f"http://127.0.0.1:{mock_port}",
            # A line for each request is no part of what the other gateways do.
            "LOG_LEVEL": "error",
            # By itself it refuses a client of many requests a second.
            "RATE_LIMIT_RPS": "0",
            # The gateway has one core.
            "GOMAXPROCS": "1",
        }
        self._launch([str(self.folder / "bin" / "ferrogw"), "serve"], f"http://127.0.0.1:{port}/health", environment)
        return Endpoint(port, model=_MODEL, headers={"authorization": f"Bearer {_KEY}"})
