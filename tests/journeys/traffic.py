from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import httpx2

from tests.live.service import ROOT, LiveService, minimal_environment
from tests.services import START_SECONDS

CLIENTS = 4


@dataclass(frozen=True)
class Project:
    id: str
    key: str


def new_project(service: LiveService, name: str) -> Project:
    command = [sys.executable, "manage.py", "bootstrap", "--name", name, "--json"]
    environment = minimal_environment(service.var_dir)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    made = json.loads(done.stdout)
    return Project(made["project_id"], made["api_key"])


@dataclass
class Traffic:
    """`succeeded` holds the ids of whole answers; `failures` counts all other attempts. Each client pauses for `pause`
    seconds between requests, since traffic starves the processes that it waits for."""

    service: LiveService
    project: Project
    session: str
    pause: float = 0.01
    succeeded: list[str] = field(default_factory=list)
    failures: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _more: threading.Condition = field(default_factory=threading.Condition)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._threads = [threading.Thread(target=self._run, args=(number,), daemon=True) for number in range(CLIENTS)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(2 * START_SECONDS)

    def wait_for_more(self, count: int, *, seconds: float = START_SECONDS) -> None:
        with self._more:
            needed = len(self.succeeded) + count
            if not self._more.wait_for(lambda: len(self.succeeded) >= needed, seconds):
                raise AssertionError(f"fewer than {count} answers in {seconds} s")

    def _run(self, number: int) -> None:
        with httpx2.Client(base_url=self.service.base_url, timeout=START_SECONDS) as client:
            turn = 0
            while not self._stop.is_set():
                turn += 1
                try:
                    request_id = self._ask(client, stream=(turn + number) % 2 == 0)
                except httpx2.HTTPError:
                    request_id = ""
                with self._more:
                    if request_id:
                        self.succeeded.append(request_id)
                    else:
                        self.failures += 1
                    self._more.notify_all()
                self._stop.wait(self.pause)

    def _ask(self, client: httpx2.Client, *, stream: bool) -> str:
        response = client.post(
            "/api/gateway/v1/chat/completions",
            json={"model": "sandbox/echo", "messages": [{"role": "user", "content": "ping"}], "stream": stream},
            headers={"authorization": f"Bearer {self.project.key}", "x-svc-session-id": self.session},
        )
        whole = response.text.endswith("data: [DONE]\n\n") and '"error"' not in response.text
        if response.status_code != 200 or (stream and not whole):
            return ""
        return response.headers["x-request-id"]
