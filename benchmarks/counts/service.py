"""The product whose requests are counted: `serve` beside PostgreSQL, a project without limits and one with all of them,
and further web workers on the same stores for counts that slow a worker down."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from benchmarks import processes
from benchmarks.targets.base import ROOT, Endpoint
from benchmarks.targets.ours import (
    Ours,
    OursLimits,
    add_integration,
    add_prompt,
    begin_online_evaluation,
    roll_out,
    set_limits,
)
from benchmarks.targets.surfaces import SURFACES
from tests.services import Service, start_postgresql
from tests.stores import shared_secrets


class Counted(Ours):
    name: ClassVar[str] = "counts"
    environment: dict[str, str]

    def __init__(self, workspace: Path, stack: ExitStack) -> None:
        super().__init__(workspace)
        self._stack = stack
        self.postgresql = self._start_postgresql()

    def _start_postgresql(self) -> Service:
        # The server runs as another user than root, who has to be able to enter the folder.
        self.workspace.mkdir(parents=True)
        for folder in (self.workspace, self.workspace.parent):
            folder.chmod(0o755)
        server, url = start_postgresql(self.workspace / "pg")
        self._stack.callback(lambda: server.stop(signal.SIGINT))
        self.environment = {"DATABASE_URL": url, "SNAPSHOT_SECONDS": "3600", **shared_secrets()}
        return server

    @property
    def postgresql_log(self) -> Path:
        return self.workspace / "pg" / "postgresql.log"

    def _launch(self, command: list[str], ready: str, environment: dict[str, str] | None = None) -> None:
        self.environment |= environment or {}
        self._stack.callback(self.stop)
        # Both ask the database by the clock, whatever the requests are.
        parts = ["--without", "celery", "--without", "exporter"]
        super()._launch([*command, *parts], ready, self.environment)

    def _bootstrap(self, manage: list[str], environment: dict[str, str], name: str = "bench") -> dict[str, str]:
        return super()._bootstrap(manage, self.environment, name)

    def _prepare(self, api: str, mock_port: int, headers: dict[str, str]) -> None:
        super()._prepare(api, mock_port, headers)
        # The bounds hold while every answer is due to be scored: that is the work of Celery, which does not run here.
        begin_online_evaluation(api, headers)

    def start_limited(self, mock_port: int, plain: Endpoint) -> Endpoint:
        made = self._bootstrap([sys.executable, str(self.source / "manage.py")], {}, "limits")
        authorization = {"authorization": f"Bearer {made['api_key']}"}
        api, headers = f"http://127.0.0.1:{plain.port}/api/llm", {**authorization, "x-project-id": made["project_id"]}
        self._prepare(api, mock_port, headers)
        set_limits(api, headers)
        return replace(plain, headers={**plain.headers, **authorization}, fields=dict(OursLimits.fields))

    def start_surfaces(self, mock_port: int, plain: Endpoint) -> dict[str, Endpoint]:
        made = self._bootstrap([sys.executable, str(self.source / "manage.py")], {}, "surfaces")
        authorization = {"authorization": f"Bearer {made['api_key']}"}
        headers = {**authorization, "x-project-id": made["project_id"]}
        places = {target.provider: f"http://127.0.0.1:{mock_port}{target.upstream_path}" for target in SURFACES}
        for provider, place in places.items():
            add_integration(f"http://127.0.0.1:{plain.port}/api/llm", provider, place, headers)
        return {
            target.name.removeprefix("ours-").replace("-", "_"): replace(
                plain,
                path=f"/api/gateway/{target.address}",
                model=target.model,
                headers={**plain.headers, **authorization},
            )
            for target in SURFACES
        }

    def start_prompts(self, mock_port: int, plain: Endpoint) -> dict[str, Endpoint]:
        made = self._bootstrap([sys.executable, str(self.source / "manage.py")], {}, "prompts")
        authorization = {"authorization": f"Bearer {made['api_key']}"}
        api, headers = f"http://127.0.0.1:{plain.port}/api/llm", {**authorization, "x-project-id": made["project_id"]}
        self._prepare(api, mock_port, headers)
        text = "You work for Acme. Be kind, and brief, and exact. " + "Stay polite. " * 20
        add_prompt(api, "prompt", text, headers)
        roll_out(api, "rollout", text, headers)
        return {
            name: replace(
                plain, headers={**plain.headers, **authorization}, fields={"prompt_config": name, "user": "user-1"}
            )
            for name in ("prompt", "rollout")
        }

    def start_worker(self, name: str, *, under: Callable[[Path], list[str]] = lambda _: []) -> ExtraWorker:
        folder = self.workspace / name
        command = under(folder)
        folder.mkdir()
        worker = ExtraWorker(folder, self.environment, command)
        self._stack.callback(worker.stop)
        return worker


class ExtraWorker:
    def __init__(self, folder: Path, environment: dict[str, str], under: list[str]) -> None:
        self.folder = folder
        self.probe = folder / "probe"
        self.probe.touch()
        self._log = folder / "output.log"
        listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = listening.getsockname()[1]
        prestop, self._prestop = os.pipe()
        # Whether it serves is asked by HTTP: nothing else does here.
        serving = os.open(os.devnull, os.O_WRONLY)
        descriptors = listening.fileno(), prestop, serving
        command = [*under, sys.executable, "-m", "benchmarks.counts.worker", *map(str, descriptors), str(self.probe)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                # The order of sets of strings depends on the seed, and with it a little of what is counted.
                env={**os.environ, **environment, "PYTHONHASHSEED": "0"},
                stdout=log,
                stderr=log,
                pass_fds=descriptors,
                start_new_session=True,
            )
        listening.close()
        os.close(prestop)
        os.close(serving)

    def endpoint(self, of_service: Endpoint) -> Endpoint:
        return replace(of_service, port=self.port)

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self) -> None:
        processes.wait_ready(self._process, f"http://127.0.0.1:{self.port}/healthz", log=self._log, seconds=180.0)

    def stop(self) -> None:
        processes.stop(self._process)
        os.close(self._prestop)
