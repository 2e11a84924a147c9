"""Portkey's gateway on Node: one process, no cache, no database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

from benchmarks import processes
from benchmarks.targets.base import PEERS, Endpoint, Target, run_step

_PACKAGE = "@portkey-ai/gateway"
_VERSION = "1.15.2"


class Portkey(Target):
    name: ClassVar[str] = "portkey"
    label: ClassVar[str] = "Portkey (Node)"

    @property
    def _module(self) -> Path:
        return PEERS / self.name / "node_modules" / _PACKAGE

    @property
    def installed(self) -> bool:
        # An earlier run may have left another version.
        return (self._module / "build" / "start-server.js").exists() and self._version() == _VERSION

    def install(self) -> None:
        if not self.installed:
            folder = PEERS / self.name
            folder.mkdir(parents=True, exist_ok=True)
            package = f"{_PACKAGE}@{_VERSION}"
            run_step(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), package])

    def version(self) -> str:
        node = run_step(["node", "--version"])
        return f"{self._version()}, node {node}"

    def _version(self) -> str:
        return str(json.loads((self._module / "package.json").read_text())["version"])

    def start(self, mock_port: int) -> Endpoint:
        port = processes.free_port()
        command = ["node", str(self._module / "build" / "start-server.js"), f"--port={port}", "--headless"]
        environment = {"NODE_ENV": "production", "TRUSTED_CUSTOM_HOSTS": "127.0.0.1,localhost"}
        self._launch(command, f"http://127.0.0.1:{port}/", environment)
        headers = {
            "authorization": "Bearer sk-mock",
            "x-portkey-provider": "openai",
            "x-portkey-custom-host": f"http://127.0.0.1:{mock_port}/v1",
        }
        return Endpoint(port, headers=headers)
