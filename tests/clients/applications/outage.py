"""Applications fetch prompts while PostgreSQL, Redis and the ClickHouse engine are away, and must not notice it.

`make outage` (or `make outage ARGS="--seconds 600"`) starts the whole product on stores of its own with its usual
periods, and takes all three stores away for five minutes: for half of the time they hang, then they are dead. Every
second everybody asks again: HTTP by itself, both clients, and new ones, which have kept nothing. Exit status 1 means
that somebody noticed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from tests.clients.applications.drivers import DRIVERS, Driver
from tests.live.prompts import Project
from tests.live.service import LiveService
from tests.stores import Stores
from tests.waiting import TIMEOUT_SECONDS, wait_until

Question = tuple[str, Mapping[str, Any]]

_WHO = [{"name": "who", "type": "string", "required": True}]
_STAGES = [{"weight": 50, "min_duration_minutes": 60, "min_requests": 0}]
# The active version, a label, the number of a version that is neither, a rendered text, and the arm of a rollout.
QUESTIONS: tuple[Question, ...] = (
    ("support", {}),
    ("support", {"label": "staging"}),
    ("support", {"version": 2}),
    ("support", {"variables": {"who": "Ann"}}),
    ("rolled-out", {"user_id": "u-1"}),
)
# A new client of each language is made at each of so many looks: the one for TypeScript is a process.
_LOOKS_A_NEW_CLIENT = 10


@dataclass
class Figures:
    """`fetches`, `kept` and `new` count answers while the stores were away: over HTTP, of clients that had fetched
    before, and of new clients. `wrong` names answers that differ from before."""

    seconds: float = 0.0
    looks: int = 0
    fetches: int = 0
    kept: Counter[str] = field(default_factory=Counter)
    new: Counter[str] = field(default_factory=Counter)
    milliseconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def as_json(self) -> str:
        return json.dumps(
            {
                "seconds": round(self.seconds, 1),
                "looks": self.looks,
                "fetches": self.fetches,
                "kept": self.kept,
                "new": self.new,
                "p50_ms": round(statistics.median(self.milliseconds), 2),
                "max_ms": round(max(self.milliseconds), 2),
                "wrong": self.wrong[:10],
            }
        )


class Outage:
    def __init__(self, service: LiveService, stores: Stores, stack: ExitStack) -> None:
        self.service, self.stores, self.figures = service, stores, Figures()
        self._stack = stack
        self._session = stack.enter_context(requests.Session())
        self._session.headers["Authorization"] = f"Bearer {service.api_key}"
        self._made()
        self._expected = [self._fetched(question).json() for question in QUESTIONS]
        self._clients = {name: self._new_client(name) for name in DRIVERS}
        self._kept = {name: _prompts(client) for name, client in self._clients.items()}
        for name, prompts in self._kept.items():
            assert {prompt["source"] for prompt in prompts} == {"service"}, (name, prompts)

    def look(self, *, after: float) -> None:
        """Has everybody fetch every prompt once, `after` seconds on the clients' clocks."""
        figures = self.figures
        if self._session.get(f"{self.service.base_url}/readyz", timeout=TIMEOUT_SECONDS).status_code != 200:
            figures.wrong.append("a load balancer would have taken the host out")
        for question, expected in zip(QUESTIONS, self._expected, strict=True):
            began = time.monotonic()
            answer = self._fetched(question)
            figures.milliseconds.append((time.monotonic() - began) * 1000)
            figures.fetches += 1
            if answer.status_code != 200 or answer.json() != expected:
                figures.wrong.append(f"HTTP, {question}: {answer.status_code} {answer.text[:200]}")
        for name, client in self._clients.items():
            client.advance(after)
            self._compare(f"the client for {name}", _prompts(client), self._kept[name])
            figures.kept[name] += len(QUESTIONS)
        if figures.looks % _LOOKS_A_NEW_CLIENT == 0:
            self._look_with_new_clients()
        figures.looks += 1

    def _look_with_new_clients(self) -> None:
        """A client that has kept nothing must get its prompts from the service."""
        for name in DRIVERS:
            with closing(self._driver(name)) as client:
                self._compare(f"a new client for {name}", _prompts(client), self._kept[name])
            self.figures.new[name] += len(QUESTIONS)

    def _compare(self, who: str, found: list[Any], expected: list[Any]) -> None:
        for question, got, wanted in zip(QUESTIONS, found, expected, strict=True):
            if got != wanted:
                self.figures.wrong.append(f"{who}, {question}: {str(got)[:200]}")

    def _new_client(self, name: str) -> Driver:
        return self._stack.enter_context(closing(self._driver(name)))

    def _driver(self, name: str) -> Driver:
        address = {"base_url": self.service.base_url, "api_key": self.service.api_key}
        return DRIVERS[name]({**address, "project_id": self.service.project_id, "timeout": TIMEOUT_SECONDS})

    def _fetched(self, question: Question) -> requests.Response:
        name, options = question
        parameters = {key: json.dumps(value) if key == "variables" else value for key, value in options.items()}
        url = f"{self.service.base_url}/api/llm/prompts/{name}"
        return self._session.get(url, params=parameters, timeout=TIMEOUT_SECONDS)

    def _made(self) -> None:
        project = Project(self.service, self.service.project_id, self.service.api_key)
        support = project.prompt(
            "support",
            {"system_prompt": "You help {{ who }}.", "variables": _WHO},
            {"system_prompt": "You help {{ who }} at once.", "variables": _WHO},
            {"system_prompt": "You help {{ who }} tomorrow.", "variables": _WHO},
        )
        project.call("PUT", f"configs/{support.config_id}/labels/staging", {"version_number": 3})
        rolled_out = project.prompt("rolled-out", {"system_prompt": "Old."}, {"system_prompt": "New."})
        rolled_out.rollout(allocation_type="user_sticky", stages=_STAGES)

        def known() -> bool:
            answers = [self._fetched(question) for question in QUESTIONS]
            return all(answer.ok for answer in answers) and answers[-1].json()["rollout"] is not None

        wait_until(known, what="the prompts in the worker")


@contextmanager
def outage(environment: Mapping[str, str] | None = None) -> Iterator[Outage]:
    """Starts the product on its own stores with one web worker, since each worker has its own snapshot."""
    with ExitStack() as stack:
        # The folder's name is short: a Unix socket's path has at most 107 bytes.
        folder = Path(tempfile.mkdtemp(prefix="out-", dir="/tmp"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        stores = Stores(folder, stack)
        service = LiveService(
            folder / "var", {**stores.environment, "WEB_WORKERS": "1", **(environment or {})}, ["--without", "celery"]
        )
        # Without its stores the service cannot ship its records, so that it would take long to end in order.
        stack.callback(service.kill_supervisor)
        yield Outage(service, stores, stack)


def _prompts(client: Driver) -> list[Any]:
    return [client.get(name, **options) for name, options in QUESTIONS]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two looks")
    options = parser.parse_args()
    with outage() as running:
        began = looked = time.monotonic()
        running.stores.freeze()
        is_frozen = True
        while (away := time.monotonic() - began) < options.seconds:
            if is_frozen and away >= options.seconds / 2:
                running.stores.kill_frozen()
                is_frozen = False
            now = time.monotonic()
            running.look(after=now - looked)
            looked = now
            time.sleep(options.pause)
        running.figures.seconds = time.monotonic() - began
        sys.stdout.write(f"{running.figures.as_json()}\n")
        return 1 if running.figures.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
