"""Starts of the service whose analytics store is away or dies: it serves from the first second, and loses nothing.

`make coldstart` measures what the documents promise: for five minutes there is no ClickHouse and 1,000 requests are
sent, then it appears; and the engine of a fresh service is killed 20 times in the first minute. `--seconds`,
`--requests` and `--kills` choose other numbers. Exit status 1 means that a promise was broken.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
from clickhouse_driver import Client
from clickhouse_driver import errors as driver_errors

from tests.gateway.service import free_port
from tests.live.service import ROOT, LiveService, minimal_environment
from tests.services import START_SECONDS
from tests.waiting import TIMEOUT_SECONDS, wait_until

_PASSWORD = "of-the-store-that-comes-later"
_SPAN_OF_KILLS_SECONDS = 60.0


@dataclass
class Figures:
    """`statuses` counts the gateway's answers, `management` those to a question to the analytics store, `rows` and
    `distinct` what the request log has in the end."""

    statuses: Counter[int] = field(default_factory=Counter)
    management: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    rows: int = 0
    distinct: int = 0
    seconds: float = 0.0
    after: float = 0.0  # The seconds from the store's appearance, or last kill, until it had every row.

    @property
    def is_right(self) -> bool:
        sent = self.statuses.total()
        return self.statuses[200] == sent == self.rows == self.distinct and not _wrong(self.management)

    def as_json(self) -> str:
        shown: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.dumps({**shown, "seconds": round(self.seconds, 1), "after": round(self.after, 1)})


def _wrong(management: Counter[str]) -> set[str]:
    return set(management) - {"200", "503 analytics_unavailable retry-after=5"}


def ask(service: LiveService, session: requests.Session, figures: Figures) -> None:
    answer = session.post(
        f"{service.base_url}/api/gateway/v1/chat/completions",
        headers={"Authorization": f"Bearer {service.api_key}", "x-svc-session-id": "cold"},
        json={"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]},
        timeout=TIMEOUT_SECONDS,
    )
    figures.statuses[answer.status_code] += 1
    asked = service.manage("metrics/providers/history", timeout=TIMEOUT_SECONDS)
    told = str(asked.status_code)
    if asked.status_code != 200:
        told += f" {asked.json()['error']['code']} retry-after={asked.headers.get('retry-after')}"
    figures.management[told] += 1


@contextmanager
def store(folder: Path, port: int) -> Iterator[None]:
    environment = {**minimal_environment(folder), "ANALYTICS_ENGINE_PASSWORD": _PASSWORD}
    command = [sys.executable, "manage.py", "analytics_engine", "--data", str(folder / "data"), "--port", str(port)]
    with (folder.with_suffix(".log")).open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(START_SECONDS)


def later(port: int) -> str:
    return f"clickhouse://default:{_PASSWORD}@127.0.0.1:{port}/llm"


def without_store(service: LiveService, folder: Path, port: int, *, requests_sent: int, seconds: float) -> Figures:
    figures, began = Figures(), time.monotonic()
    with requests.Session() as session:
        for number in range(requests_sent):
            time.sleep(max(began + seconds * number / requests_sent - time.monotonic(), 0.0))
            ask(service, session, figures)
    figures.seconds = time.monotonic() - began
    with store(folder, port):
        _wait_for_rows(service, later(port), figures)
        # The shipper has what it wants before its store ends.
        assert service.stop() == 0
    return figures


class Killer(threading.Thread):
    def __init__(self, var_dir: Path, *, kills: int, span_seconds: float, seed: int) -> None:
        super().__init__(name="killer", daemon=True)
        draw = random.Random(seed)
        self._moments = sorted(draw.uniform(0.0, span_seconds) for _ in range(kills))
        self._pid_file = var_dir / "run" / "engine.pid"
        self.kills = 0

    def run(self) -> None:
        began = time.monotonic()
        for moment in self._moments:
            time.sleep(max(began + moment - time.monotonic(), 0.0))
            wait_until(self._kill, seconds=START_SECONDS, what="an engine to kill")
            self.kills += 1

    def _kill(self) -> bool:
        """Returns False while the last engine is still being replaced."""
        try:
            os.kill(int(self._pid_file.read_text(encoding="ascii")), signal.SIGKILL)
        except (FileNotFoundError, ValueError, ProcessLookupError):
            return False
        return True


def killed_engines(start: Callable[[], LiveService], killer: Killer) -> tuple[LiveService, Figures]:
    figures, began = Figures(), time.monotonic()
    killer.start()
    service = start()
    with requests.Session() as session:
        while killer.is_alive():
            ask(service, session, figures)
        ask(service, session, figures)
    figures.seconds, figures.kills = time.monotonic() - began, killer.kills
    _wait_for_rows(service, "", figures)
    return service, figures


def _wait_for_rows(service: LiveService, url: str, figures: Figures) -> None:
    began, sent = time.monotonic(), figures.statuses[200]

    def found() -> bool:
        figures.rows, figures.distinct = _rows(url or _embedded(service))
        return figures.distinct >= sent

    wait_until(found, seconds=4 * START_SECONDS, what=f"{sent} rows, {figures}, {service.log[-3000:]}")
    figures.after = time.monotonic() - began


def _embedded(service: LiveService) -> str:
    file = service.var_dir / "run" / "clickhouse.url"
    return file.read_text(encoding="utf-8").strip() if file.exists() else ""


def _rows(url: str) -> tuple[int, int]:
    if not url:
        return 0, 0
    client = Client.from_url(url)
    try:
        [counts] = client.execute("SELECT count(), uniqExact(request_id) FROM llm.requests")
    except (driver_errors.Error, OSError, EOFError):
        return 0, 0
    finally:
        client.disconnect()
    return counts[0], counts[1]


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="how long there is no store")
    parser.add_argument("--requests", type=int, default=1000, help="how many are sent meanwhile")
    parser.add_argument("--kills", type=int, default=20, help="of the engine in the first minute")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000), help="of the moments of the kills")
    options = parser.parse_args()
    # The driver logs each connection that is refused, with its traceback.
    logging.getLogger("clickhouse_driver").setLevel(logging.CRITICAL)
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="cold-") as name:
        folder = Path(name)
        away = _started(folder / "away", {"CLICKHOUSE_URL": later(port)})
        without = without_store(away, folder / "store", port, requests_sent=options.requests, seconds=options.seconds)
        sys.stdout.write(f"without a store: {without.as_json()}\n")
        killer = Killer(folder / "killed", kills=options.kills, span_seconds=_SPAN_OF_KILLS_SECONDS, seed=options.seed)
        service, killed = killed_engines(lambda: _started(folder / "killed", {}), killer)
        code = service.stop()
        sys.stdout.write(f"engine killed, seed {options.seed}: {killed.as_json()}, exit code {code}\n")
    return 0 if without.is_right and killed.is_right and code == 0 else 1


def _started(var_dir: Path, environment: dict[str, str]) -> LiveService:
    return LiveService(var_dir, environment, prepared=False)


if __name__ == "__main__":
    sys.exit(_main())
