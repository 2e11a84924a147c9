"""`python -m benchmarks.prompts` measures how long applications wait for a prompt. See benchmarks/README.md."""

from __future__ import annotations

import argparse
import http.client
import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlencode

from benchmarks import report
from benchmarks.gateway import mock_upstream
from benchmarks.propagation import OursManaged, Service

_NAME = "fetched"
_TEXT = "You help {{ name }} with {{ topic }}. " + "Be brief, be kind, and say where you know it from. " * 40
_VARIABLES = [{"name": "name", "type": "string", "required": True}, {"name": "topic", "type": "string"}]
_WARM_UP = 200
_MAX_P50_MS = 3.0

Fetch = Callable[[int], tuple[str, Mapping[str, str]]]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    with ExitStack() as stack:
        workspace = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="prompts-benchmark-")))
        mock_port = stack.enter_context(mock_upstream())
        target = OursManaged(workspace)
        stack.callback(target.stop)
        service = Service(target, target.start(mock_port), mock_port)
        load = os.getloadavg()[0]
        measured = {name: _measured(service, fetch, options.fetches) for name, fetch in _fetches(service).items()}
    print(table(measured))
    print(f"\nOne client on one connection; a prompt of {len(_TEXT)} characters.")
    print(f"Load of the machine at the start {load:.1f}, at the end {os.getloadavg()[0]:.1f}. {report.machine()}")
    return 1 if any(_quantile(found, 0.5) > _MAX_P50_MS for found in measured.values()) else 0


def table(measured: Mapping[str, Sequence[float]]) -> str:
    lines = ["| Fetch | fetches | p50 ms | p95 ms | p99 ms |", "|---|---|---|---|---|"]
    for name, found in measured.items():
        figures = " | ".join(f"{_quantile(found, share):.2f}" for share in (0.5, 0.95, 0.99))
        lines.append(f"| {name} | {len(found)} | {figures} |")
    return "\n".join(lines)


def _quantile(found: Sequence[float], share: float) -> float:
    return sorted(found)[math.ceil(share * len(found)) - 1]


def _fetches(service: Service) -> dict[str, Fetch]:
    config = service.manage("POST", "prompts/configs", {"name": _NAME})["id"]
    path = f"prompts/configs/{config}"
    versions = [
        service.manage("POST", f"{path}/versions", {"system_prompt": f"{_TEXT}{end}", "variables": _VARIABLES})["id"]
        for end in ("One.", "Two.")
    ]
    service.manage("PUT", f"{path}/labels/production", {"version_number": 1})
    stages = [{"weight": 50, "min_duration_minutes": 60, "min_requests": 0}]
    rollout = {"config_id": config, "target_version_id": versions[1], "name": "r", "allocation_type": "user_sticky"}
    made = service.manage("POST", "prompts/rollouts", {**rollout, "stages": stages})["id"]
    service.manage("POST", f"prompts/rollouts/{made}/start", {})
    values = json.dumps({"name": "Ann", "topic": "parcels"})
    etag = _etag(service)
    return {
        "by label": lambda number: (_path(label="production"), {}),
        "by label, unchanged (304)": lambda number: (_path(label="production"), {"if-none-match": etag}),
        "by number": lambda number: (_path(version="2"), {}),
        "rendered": lambda number: (_path(label="production", variables=values), {}),
        "of a rollout, rendered": lambda number: (_path(user_id=f"u-{number}", variables=values), {}),
    }


def _path(**query: str) -> str:
    return f"/api/llm/prompts/{_NAME}?{urlencode(query)}"


def _etag(service: Service) -> str:
    while True:
        with closing(service.connect()) as connection:
            status, etag, _ = _sent(service, connection, _path(label="production"), {})
        if status == 200:
            return etag
        time.sleep(0.01)


def _measured(service: Service, fetch: Fetch, fetches: int) -> list[float]:
    found = []
    with closing(service.connect()) as connection:
        for number in range(_WARM_UP + fetches):
            status, _, milliseconds = _sent(service, connection, *fetch(number))
            if status not in (200, 304):
                raise RuntimeError(f"{fetch(number)[0]}: {status}")
            found.append(milliseconds)
    return found[_WARM_UP:]


def _sent(
    service: Service, connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str]
) -> tuple[int, str, float]:
    began = time.perf_counter()
    connection.request("GET", path, headers={**service.target.headers, **headers})
    answer = connection.getresponse()
    answer.read()
    return answer.status, answer.getheader("etag") or "", (time.perf_counter() - began) * 1000


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prompts", description=__doc__)
    parser.add_argument("--fetches", type=int, default=2000, help="of each kind (2000)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
