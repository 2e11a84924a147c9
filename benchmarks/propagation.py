"""`python -m benchmarks.propagation` measures how long a change takes to reach every worker. See
benchmarks/README.md."""

from __future__ import annotations

import argparse
import http.client
import json
import math
import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import psutil
from tqdm import tqdm

from benchmarks import report
from benchmarks.gateway import mock_upstream
from benchmarks.targets.base import Endpoint
from benchmarks.targets.ours import Ours

_WORKERS = 2
_GIVE_UP_SECONDS = 30.0
_POLL_SECONDS = 0.001
# The budget is below the price of a request that costs `_DEAR`, and above that of any other.
_SESSION_BUDGET = {"session_budget_usd": 0.01}
_CHEAP, _DEAR = "0.01", "10000"

Answer = tuple[int, Mapping[str, str]]
Seen = Callable[[Answer], bool]


class OursManaged(Ours):
    name: ClassVar[str] = "ours-managed"
    workers: ClassVar[int] = _WORKERS
    headers: dict[str, str]

    def _prepare(self, api: str, mock_port: int, headers: dict[str, str]) -> None:
        super()._prepare(api, mock_port, headers)
        self.headers = headers


@dataclass
class Service:
    """`manage` raises RuntimeError on any answer but a success."""

    target: OursManaged
    endpoint: Endpoint
    mock_port: int

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.endpoint.port, timeout=_GIVE_UP_SECONDS)

    def manage(self, method: str, path: str, content: Any = None) -> Any:
        with closing(self.connect()) as connection:
            connection.request(method, f"/api/llm/{path}", _encoded(content), self.target.headers | _JSON)
            answer = connection.getresponse()
            body = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {body[:200]!r}")
        return json.loads(body) if body else None

    def ask(self, connection: http.client.HTTPConnection, headers: Mapping[str, str], **fields: Any) -> Answer:
        content = {"model": self.endpoint.model, "messages": [{"role": "user", "content": "Hello"}], **fields}
        sent = {**self.endpoint.headers, **headers, **_JSON}
        connection.request("POST", self.endpoint.path, _encoded(content), sent)
        answer = connection.getresponse()
        answer.read()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}

    @contextmanager
    def each_worker(self) -> Iterator[list[http.client.HTTPConnection]]:
        found: dict[int, http.client.HTTPConnection] = {}
        with ExitStack() as stack:
            while len(found) < _WORKERS:
                connection = stack.enter_context(closing(self.connect()))
                self.ask(connection, {})
                # A lost connection must not be opened again at another worker.
                connection.auto_open = 0
                port = connection.sock.getsockname()[1]
                for worker in self.target.serving():
                    if port in _client_ports(worker):
                        found.setdefault(worker.pid, connection)
            yield list(found.values())

    def aborted_streams(self) -> int:
        with closing(http.client.HTTPConnection("127.0.0.1", self.mock_port)) as connection:
            connection.request("GET", "/mock/stats")
            return int(json.load(connection.getresponse())["streams_aborted"])


@dataclass
class Kind:
    """One kind of change and its test. `change` is called with 1, 2, … and returns a test of an answer for the change;
    `fields` and `headers` are those of the test's requests."""

    name: str
    change: Callable[[int], Seen]
    headers: dict[str, str] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)


_JSON = {"content-type": "application/json"}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    with ExitStack() as stack:
        workspace = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="propagation-benchmark-")))
        mock_port = stack.enter_context(mock_upstream())
        target = OursManaged(workspace)
        stack.callback(target.stop)
        service = Service(target, target.start(mock_port), mock_port)
        load = os.getloadavg()[0]
        measured = _measure(service, options.changes)
    print(table(measured))
    print(f"\nFrom the sending of the change to the last worker's first answer that shows it, {_WORKERS} workers.")
    print(f"Load of the machine at the start {load:.1f}, at the end {os.getloadavg()[0]:.1f}. {report.machine()}")
    return 1 if any(None in found for found in measured.values()) else 0


def table(measured: Mapping[str, Sequence[float | None]]) -> str:
    lines = ["| Change | changes | p50 ms | p95 ms | max ms | not seen |", "|---|---|---|---|---|---|"]
    for name, found in measured.items():
        seen = sorted(value for value in found if value is not None)
        figures = (
            [f"{seen[math.ceil(share * len(seen)) - 1]:,.0f}" for share in (0.5, 0.95, 1.0)] if seen else ["-"] * 3
        )
        lines.append(f"| {name} | {len(found)} | {' | '.join(figures)} | {len(found) - len(seen)} |")
    return "\n".join(lines)


def _measure(service: Service, changes: int) -> dict[str, list[float | None]]:
    measured: dict[str, list[float | None]] = {}
    for kind in _kinds(service):
        with service.each_worker() as workers:
            numbers = tqdm(range(1, changes + 1), desc=kind.name, unit="change")
            measured[kind.name] = [_until_everywhere(service, workers, kind, number) for number in numbers]
    for name, once in (("client leaves: its provider's call ends", _leave), ("request: its session is listed", _list)):
        measured[name] = [once(service) for _ in tqdm(range(changes), desc=name, unit="request")]
    return measured


def _until_everywhere(
    service: Service, workers: Sequence[http.client.HTTPConnection], kind: Kind, number: int
) -> float | None:
    waiting = list(workers)

    def seen() -> bool:
        for worker in workers:
            # Workers that show the change get requests too, so that no connection becomes idle.
            headers = {"x-svc-session-id": uuid.uuid4().hex, **kind.headers}
            if is_seen(service.ask(worker, headers, **kind.fields)) and worker in waiting:
                waiting.remove(worker)
        return not waiting

    began = time.perf_counter()
    is_seen = kind.change(number)
    return _milliseconds(began, seen)


def _leave(service: Service) -> float | None:
    """Measures the time until a client's hang-up in the middle of a stream reaches the provider."""
    before = service.aborted_streams()
    with closing(service.connect()) as connection:
        content = {"model": service.endpoint.model, "messages": [{"role": "user", "content": "Hello"}]}
        sent = _encoded({**content, "stream": True, "max_tokens": 10_000})
        connection.request("POST", service.endpoint.path, sent, {**service.endpoint.headers, **_JSON})
        connection.getresponse().read(1)
    return _milliseconds(time.perf_counter(), lambda: service.aborted_streams() > before)


def _list(service: Service) -> float | None:
    session = f"listed-{uuid.uuid4().hex}"
    with closing(service.connect()) as connection:
        began = time.perf_counter()
        service.ask(connection, {"x-svc-session-id": session})
    return _milliseconds(began, lambda: service.manage("GET", f"sessions?name_pattern={session}")["count"] > 0)


def _milliseconds(began: float, seen: Callable[[], bool]) -> float | None:
    while not seen():
        if time.perf_counter() - began > _GIVE_UP_SECONDS:
            return None
        time.sleep(_POLL_SECONDS)
    return (time.perf_counter() - began) * 1000


def _kinds(service: Service) -> list[Kind]:
    service.manage("PUT", "settings", _SESSION_BUDGET)
    return [_settings(service), _prices(service), _prompts(service), _labels(service), *_keys(service)]


def _settings(service: Service) -> Kind:
    def change(number: int) -> Seen:
        rpm = 1_000_000 + number
        limits = {"rate_limit_enabled": True, "rate_limit_rpm": rpm}
        service.manage("PUT", "settings", {**_SESSION_BUDGET, **limits})
        return lambda answer: answer[1].get("x-ratelimit-limit-requests") == str(rpm)

    return Kind("settings saved", change)


def _prices(service: Service) -> Kind:
    """A price change is seen when a request that costs more than its session's budget is refused."""

    def change(number: int) -> Seen:
        price, status = (_DEAR, 429) if number % 2 else (_CHEAP, 200)
        own = {"input_cost_per_1m": price, "output_cost_per_1m": price}
        service.manage("PUT", f"pricing/openai/{service.endpoint.model}", own)
        return lambda answer: answer[0] == status

    return Kind("price set", change, fields={"max_tokens": 100})


def _prompts(service: Service) -> Kind:
    config = service.manage("POST", "prompts/configs", {"name": "propagation"})["id"]
    path = f"prompts/configs/{config}/versions"
    versions = [service.manage("POST", path, {"system_prompt": text})["id"] for text in ("One.", "Two.")]

    def change(number: int) -> Seen:
        at = number % 2
        service.manage("POST", f"{path}/{versions[at]}/activate")
        return lambda answer: answer[1].get("x-svc-prompt-version") == str(at + 1)

    return Kind("prompt version activated", change, fields={"prompt_config": "propagation", "max_tokens": 1})


def _labels(service: Service) -> Kind:
    config = service.manage("POST", "prompts/configs", {"name": "labelled"})["id"]
    path = f"prompts/configs/{config}"
    for text in ("One.", "Two."):
        service.manage("POST", f"{path}/versions", {"system_prompt": text})

    def change(number: int) -> Seen:
        version = number % 2 + 1
        service.manage("PUT", f"{path}/labels/production", {"version_number": version})
        return lambda answer: answer[1].get("x-svc-prompt-version") == str(version)

    return Kind("prompt label moved", change, fields={"prompt_config": "labelled@production", "max_tokens": 1})


def _keys(service: Service) -> Iterator[Kind]:
    made: list[dict[str, Any]] = []
    numbers = count()
    headers: dict[str, str] = {}

    def make(number: int) -> Seen:
        made.append(service.manage("POST", "keys", {"name": f"key {next(numbers)}", "scopes": ["gateway"]}))
        headers["authorization"] = f"Bearer {made[-1]['key']}"
        return lambda answer: answer[0] == 200

    def revoke(number: int) -> Seen:
        headers["authorization"] = f"Bearer {made[-number]['key']}"
        service.manage("DELETE", f"keys/{made[-number]['id']}")
        return lambda answer: answer[0] == 401

    yield Kind("key made", make, headers, {"max_tokens": 1})
    yield Kind("key revoked", revoke, headers, {"max_tokens": 1})


def _client_ports(process: psutil.Process) -> set[int]:
    return {found.raddr[1] for found in process.net_connections(kind="tcp") if found.status == "ESTABLISHED"}


def _encoded(content: Any) -> bytes | None:
    return None if content is None else json.dumps(content).encode()


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.propagation", description=__doc__)
    parser.add_argument("--changes", type=int, default=50, help="of each kind (50)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
