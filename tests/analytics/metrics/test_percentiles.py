"""Percentiles are close to exact ranks, also for data that is hard for sketches."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from analytics.clickhouse import client
from tests.analytics.metrics.conftest import Api, make_api
from tests.analytics.metrics.reference import rank_error
from tests.kept import Keep
from tests.night import cases

pytestmark = pytest.mark.django_db

_REQUESTS = 24_000
_START = datetime(2026, 11, 1, tzinfo=UTC)
_HASH = "sipHash64(number)"
# The latencies in ms by the number of a request. Requests are a minute apart, so that a latency that grows with the
# number differs from hour to hour and from day to day, which is hardest for merged sketches.
_DISTRIBUTIONS = {
    "constant": "250",
    "two values": "if(number % 2 = 0, 100, 30000)",
    "two crowds": f"if({_HASH} % 100 < 50, 100 + {_HASH} % 20, 30000 + {_HASH} % 20)",
    "gap at the 95th": f"if({_HASH} % 1000 < 949, 100 + {_HASH} % 20, 30000 + {_HASH} % 9000)",
    "gap at the 99th": f"if({_HASH} % 1000 < 989, 100 + {_HASH} % 20, 30000 + {_HASH} % 9000)",
    "heavy tail": f"least(4e9, 50 * pow(1 - {_HASH} / 18446744073709551616., -2))",
    "growing": "number",
    "falling": f"{_REQUESTS} - number",
    "growing by powers": f"pow(2, number * 24 / {_REQUESTS})",
    "steps": "intDiv(number, 1500) * 1000",
}


# The hardest by day: levels that lie in a gap, values that span ten powers, and sketches that differ from each other.
_SHAPES = cases(list(_DISTRIBUTIONS), by_day=["gap at the 95th", "heavy tail", "growing"])
_FEW = (1, 2, 3, 7, 150)
# Each insert makes sketches of its own.
_INSERTS = 24


@pytest.fixture(scope="module")
def projects(keep: Keep) -> dict[str | int, Api]:
    """Returns a client of a project for every shape, and for every number of a few requests."""
    return keep(_make_projects)


def _make_projects(spool: Path) -> dict[str | int, Api]:
    names: list[str | int] = [*_SHAPES, *_FEW]
    found = {name: make_api() for name in names}
    for part in range(_INSERTS):
        rows = []
        for name, (_client, project) in found.items():
            count = _REQUESTS if isinstance(name, str) else name
            first, end = count * part // _INSERTS, count * (part + 1) // _INSERTS
            rows += [_rows(project, _expression(name), first, end - first)] if end > first else []
        client.execute(
            "INSERT INTO ingest"
            " (project_id, ts, request_id, outcome, model, provider, latency_ms, ttft_ms, retention_days) "
            + " UNION ALL ".join(rows),
            {"start": _START},
        )
    return found


def _rows(project: str, expression: str, first: int, count: int) -> str:
    return (
        f"SELECT toUUID('{project}'), {{start:DateTime64(6, 'UTC')}} + toIntervalMinute(number), generateUUIDv4(),"  # noqa: S608 - of this file
        f" 'success', 'm', 'p', toUInt32({expression}) AS ms, ms, 400 FROM numbers({first}, {count})"
    )


def _expression(name: str | int) -> str:
    return _DISTRIBUTIONS[name] if isinstance(name, str) else "1000 * (number * 7 % 151)"


def _entry(api: Api, start: str, end: str) -> Any:
    answer = api[0].get("/api/llm/metrics/models", {"start_date": start, "end_date": end})
    assert answer.status_code == 200, answer.content
    return answer.json()["results"][0]


@pytest.mark.parametrize("shape", _SHAPES)
def test_percentiles__any_distribution__within_one_percent_of_rank(projects: dict[str | int, Api], shape: str) -> None:
    sample = f"SELECT toUInt32({_DISTRIBUTIONS[shape]}) FROM numbers({_REQUESTS})"  # noqa: S608 - of this file
    values = [value for (value,) in client.execute(sample)]

    days = _entry(projects[shape], "2026-11-01", "2026-12-01")
    ragged = _entry(projects[shape], "2026-11-02T10:30:30", "2026-11-12T19:00:01")

    # The range without whole days has the requests of the minutes from 2071 to 16980.
    for entry, own in ((days, values), (ragged, values[2071:16981])):
        assert entry["request_count"] == len(own)
        for kind in ("latency", "ttft"):
            for name, level in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
                found = entry[f"{name}_{kind}_ms"]
                assert rank_error([value for value in own if value or kind == "latency"], level, found) <= 0.01


@pytest.mark.parametrize("count", _FEW)
def test_percentiles__few_requests__values_of_requests(projects: dict[str | int, Api], count: int) -> None:
    values = sorted(1000.0 * (number * 7 % 151) for number in range(count))

    entry = _entry(projects[count], "2026-11-01", "2026-12-01")

    for name, level in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        assert entry[f"{name}_latency_ms"] in values
        assert rank_error(values, level, entry[f"{name}_latency_ms"]) <= 0.01
