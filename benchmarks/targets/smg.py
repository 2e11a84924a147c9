"""SMG, a gateway for inference servers: the Rust program in its wheel before a provider of OpenAI's dialect, with a key
and without a history of answers."""

from __future__ import annotations

from typing import ClassVar

from benchmarks import processes
from benchmarks.targets.base import Endpoint, PythonPeer

_KEY = "sk-benchmark-1234"


class Smg(PythonPeer):
    name: ClassVar[str] = "smg"
    label: ClassVar[str] = "SMG (Rust)"
    requirement: ClassVar[str] = "smg==1.13.0"
    distribution: ClassVar[str] = "smg"

    def start(self, mock_port: int) -> Endpoint:
        port = processes.free_port()
        options = {
            "host": "127.0.0.1",
            "port": str(port),
            "backend": "openai",
            "worker-urls": f"http://127.0.0.1:{mock_port}",
            "api-key": _KEY,
            "history-backend": "none",
            "prometheus-port": str(processes.free_port()),
            "log-level": "error",
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        # The gateway has one core.
        environment = {"TOKIO_WORKER_THREADS": "1"}
        command = [str(self.folder / "bin" / "smg"), "launch", *words]
        self._launch(command, f"http://127.0.0.1:{port}/health", environment)
        return Endpoint(port, headers={"authorization": f"Bearer {_KEY}"})
