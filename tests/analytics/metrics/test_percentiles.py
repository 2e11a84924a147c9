"""Percentiles are close to exact ranks, also for data that is hard for sketches."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from analytics.clickhouse import client
from tests.analytics.metrics.conftest import Api
from tests.analytics.metrics.reference import rank_error

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

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


@pytest.mark.parametrize("expression", list(_DISTRIBUTIONS.values()), ids=list(_DISTRIBUTIONS))
def test_percentiles__any_distribution__within_one_percent_of_rank(
    get: Callable[..., Any], api: Api, expression: str
) -> None:
    _fill(api[1], expression, _REQUESTS)
    sample = f"SELECT toUInt32({expression}) FROM numbers({_REQUESTS})"  # noqa: S608 - of this file
    values = [value for (value,) in client.execute(sample)]

    days = get("models", start_date="2026-11-01", end_date="2026-12-01")["results"][0]
    ragged = get("models", start_date="2026-11-02T10:30:30", end_date="2026-11-12T19:00:01")["results"][0]

    # The range without whole days has the requests of the minutes from 2071 to 16980.
    for entry, own in ((days, values), (ragged, values[2071:16981])):
        assert entry["request_count"] == len(own)
        for kind in ("latency", "ttft"):
            for name, level in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
                found = entry[f"{name}_{kind}_ms"]
                assert rank_error([value for value in own if value or kind == "latency"], level, found) <= 0.01


@pytest.mark.parametrize("count", [1, 2, 3, 7, 150])
def test_percentiles__few_requests__values_of_requests(get: Callable[..., Any], api: Api, count: int) -> None:
    _fill(api[1], "1000 * (number * 7 % 151)", count)
    values = sorted(1000.0 * (number * 7 % 151) for number in range(count))

    entry = get("models", start_date="2026-11-01", end_date="2026-12-01")["results"][0]

    for name, level in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        assert entry[f"{name}_latency_ms"] in values
        assert rank_error(values, level, entry[f"{name}_latency_ms"]) <= 0.01


def _fill(project: str, expression: str, count: int) -> None:
    """The requests are inserted in many inserts, each of which makes a sketch of its own."""
    step = max(count // 24, 1)
    for first in range(0, count, step):
        client.execute(
            "INSERT INTO ingest"  # noqa: S608 - of this file
            " (project_id, ts, request_id, outcome, model, provider, latency_ms, ttft_ms, retention_days)"
            f" SELECT {{project:UUID}}, {{start:DateTime64(6, 'UTC')}} + toIntervalMinute(number), generateUUIDv4(),"
            f" 'success', 'm', 'p', toUInt32({expression}) AS ms, ms, 400"
            f" FROM numbers({first}, {min(step, count - first)})",
            {"project": project, "start": _START},
        )
