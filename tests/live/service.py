from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import requests
from openai import OpenAI
from prometheus_client.parser import text_string_to_metric_families

from tests.live.read_only_root import as_asked
from tests.migrated import place_database, place_tables
from tests.services import START_SECONDS
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
ROLES = ("redis", "engine", "sandbox", "web-1", "web-2", "shipper", "exporter", "celery")
ON_DEMAND = ("sandbox", "exporter")

_STOP_SECONDS = 120.0


class LiveService:
    """The first start prints `project_id`, `api_key` and `curl`; they are empty on a later one."""

    def __init__(
        self,
        var_dir: Path,
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        *,
        prepared: bool = True,
    ) -> None:
        self.var_dir = var_dir
        self.output_file = var_dir.with_name(f"{var_dir.name}.out")
        self.log_file = var_dir.with_name(f"{var_dir.name}.log")
        self._printed_before = self.output_file.stat().st_size if self.output_file.exists() else 0
        self._logged_before = self.log_file.stat().st_size if self.log_file.exists() else 0
        self.process = self._launch(environment or {}, arguments)
        self.base_url = self._wait_until_serving()
        self.project_id = self._printed(r'project id +([^\s"]+)')
        self.api_key = self._printed(r'API key +([^\s"]+)')
        self.curl = self._printed(r"(curl .+)")
        if prepared:
            self.wait_until_prepared()

    @property
    def output(self) -> str:
        return self.output_file.read_text(encoding="utf-8")[self._printed_before :]

    @property
    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8")

    def wait_until_prepared(self) -> None:
        wait_until(lambda: "analytics.prepared" in self.log_since_start, seconds=2 * START_SECONDS, what="the tables")

    @property
    def log_since_start(self) -> str:
        return self.log_file.read_bytes()[self._logged_before :].decode()

    def pid(self, role: str) -> int | None:
        file = self.var_dir / "run" / f"{role}.pid"
        try:
            return int(file.read_text(encoding="ascii"))
        except FileNotFoundError:
            return None

    def start_on_demand(self) -> None:
        """Starts what runs only where it is needed: the sandbox, and the exporter by a destination without traffic."""
        headers = {"Authorization": f"Bearer {self.api_key}", "X-Project-Id": self.project_id}
        if self.pid("sandbox") is None:
            asked = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}
            url = f"{self.base_url}/api/gateway/v1/chat/completions"
            requests.post(url, json=asked, headers=headers, timeout=30).raise_for_status()
        if self.pid("exporter") is None:
            body = {"name": "nowhere", "endpoint": "http://127.0.0.1:9/v1/traces", "enabled": False}
            url = f"{self.base_url}/api/llm/trace-destinations"
            requests.post(url, json=body, headers=headers, timeout=30).raise_for_status()
        for role in ON_DEMAND:
            wait_until(partial(self.pid, role), what=f"a process for {role}")

    def kill(self, role: str) -> int:
        pid = wait_until(lambda: self.pid(role), what=f"a process for {role}")
        os.kill(pid, signal.SIGKILL)
        return pid

    def wait_for_successor(self, role: str, killed: int) -> int:
        def successor() -> int | None:
            pid = self.pid(role)
            return pid if pid != killed else None

        return wait_until(successor, what=f"a successor for {role}")

    def openai(self, **options: Any) -> OpenAI:
        return OpenAI(base_url=f"{self.base_url}/api/gateway/v1", api_key=self.api_key, **options)

    def manage(self, path: str, *, timeout: float = 30.0, **parameters: str) -> requests.Response:
        """Sends a GET to a path under /api/llm as the first project; `timeout` is in seconds."""
        headers = {"Authorization": f"Bearer {self.api_key}", "X-Project-Id": self.project_id}
        query = {"project_id": self.project_id, **parameters}
        return requests.get(f"{self.base_url}/api/llm/{path}", headers=headers, params=query, timeout=timeout)

    def metrics_text(self) -> str:
        url = (self.var_dir / "run" / "metrics.url").read_text(encoding="utf-8").strip()
        return requests.get(url, timeout=30).text

    def metrics(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(self.metrics_text())
            for sample in family.samples
        }

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=_STOP_SECONDS)

    def stop_at_once(self) -> int:
        """Sends SIGTERM, and a second one that skips the PRESTOP_SECONDS; returns the exit code."""
        begun = self.log.count("service.stopping")
        self.process.send_signal(signal.SIGTERM)
        wait_until(lambda: self.log.count("service.stopping") > begun, what="serve to begin to stop")
        return self.stop()

    def kill_supervisor(self) -> None:
        self.process.kill()
        self.process.wait(timeout=_STOP_SECONDS)

    def _launch(self, environment: Mapping[str, str], arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        command = as_asked(self.var_dir, [sys.executable, "manage.py", "serve", *arguments])
        with self.output_file.open("ab") as output, self.log_file.open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=ROOT,
                env={**minimal_environment(self.var_dir), **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log,
            )

    def _wait_until_serving(self) -> str:
        def serving() -> str | None:
            has_ended = self.process.poll() is not None
            address = self._printed(r"Serving (\S+) .*\n")
            if has_ended and not address:
                raise AssertionError(f"serve ended with {self.process.returncode}:\n{self.log}")
            return address or None

        # A start runs many processes, and `serve` itself gives it up after two minutes.
        try:
            return wait_until(serving, seconds=2 * START_SECONDS, what="serve to print its address")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.output}{self.log}") from error

    def _printed(self, pattern: str) -> str:
        found = re.search(pattern, self.output)
        return found.group(1) if found else ""


@contextmanager
def service_on_migrated_stores(var_dir: Path) -> Iterator[LiveService]:
    place_database(var_dir)
    place_tables(var_dir / "clickhouse")
    service = LiveService(var_dir)
    try:
        yield service
        assert service.stop() == 0
    finally:
        service.process.kill()
        service.process.wait()


def minimal_environment(var_dir: Path) -> dict[str, str]:
    """Returns the environment of a fresh shell, with free ports, and without processes that yield to others: on a busy
    machine their pages and records come late."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    chosen = {"PORT": "0", "METRICS_PORT": "0", "WEB_WORKERS": "2", "BACKGROUND_NICENESS": "0"}
    return {**kept, "VAR_DIR": str(var_dir), **chosen}


def run_curl(line: str) -> dict[str, Any]:
    shell = subprocess.run(["/bin/sh", "-c", f"{line} --silent --show-error"], capture_output=True, check=True)
    answer: dict[str, Any] = json.loads(shell.stdout)
    return answer
