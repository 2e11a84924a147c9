"""Groups of errors are what plain Python computes: their counts, first and last times, and a request of each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from analytics.request_log.record import RequestRecord
from tests.analytics.metrics import reference
from tests.analytics.metrics.conftest import NOW, Api
from tests.analytics.metrics.test_figures import ranges
from tests.factories.analytics import make_entry, store

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

Get = Callable[..., Any]
_HOUR, _TICK = timedelta(hours=1), timedelta(microseconds=1)


def expected_groups(records: reference.Records) -> list[dict[str, Any]]:
    errors = [record for record in records if reference.is_error(record)]
    groups = reference.grouped(errors, lambda one: (one.provider, one.model, one.error_type, one.error_code))
    order = sorted(groups, key=lambda key: (-len(groups[key]), key))
    return [
        {
            **dict(zip(("provider", "model", "type", "code"), key, strict=True)),
            "status_codes": sorted({record.status_code for record in groups[key]}),
            "error_count": len(groups[key]),
            "percentage": 100 * len(groups[key]) / len(errors),
            "first_seen": reference.iso(min(record.ts for record in groups[key])),
            "last_seen": reference.iso(max(record.ts for record in groups[key])),
        }
        for key in order
    ]


def test_error_groups__any_range__equal_plain_computation(get: Get, records: list[RequestRecord]) -> None:
    by_id = {record.request_id: record for record in records}
    for start, end in ranges(records, 5):
        chosen = reference.between(records, start, end)
        expected = expected_groups(chosen)

        found = get("errors/groups", start_date=start, end_date=end, limit=1000)

        samples = [one.pop("sample_request_id") for one in found["results"]]
        counts = [one.pop("counts") for one in found["results"]]
        assert found["results"] == expected, (start, end)
        assert (found["count"], found["total_errors"]) == (len(expected), sum(one["error_count"] for one in expected))
        for group, sample, numbers in zip(expected, samples, counts, strict=True):
            assert by_id[sample].error_code == group["code"]
            assert reference.iso(by_id[sample].ts) == group["last_seen"]
            assert len(numbers) == len(found["starts"])
            assert sum(numbers) == group["error_count"]


@pytest.mark.parametrize(("length", "interval"), [(_HOUR, "minute"), (72 * _HOUR, "hour"), (480 * _HOUR, "day")])
def test_error_groups__counts__are_those_of_each_interval(
    get: Get, records: list[RequestRecord], length: timedelta, interval: str
) -> None:
    start = NOW - length
    found = get("errors/groups", start_date=start, end_date=NOW, limit=1000)

    assert found["interval"] == interval
    errors = [record for record in reference.between(records, start, NOW) if reference.is_error(record)]
    unit = {"minute": timedelta(minutes=1), "hour": _HOUR, "day": timedelta(days=1)}[interval] // _TICK
    totals = reference.grouped(errors, lambda record: reference.iso(record.ts // unit * unit))
    summed = [sum(column) for column in zip(*(one["counts"] for one in found["results"]), strict=True)]
    assert summed == [len(totals.get(moment, [])) for moment in found["starts"]]


def test_error_groups__today__end_now(get: Get, api: Api, spool: Path) -> None:
    store(spool, make_entry(project_id=api[1], outcome="error"))
    today = datetime.now(NOW.tzinfo).date().isoformat()

    found = get("errors/groups", start_date=today, end_date=today)

    assert datetime.fromisoformat(found["starts"][-1]) <= datetime.now(NOW.tzinfo)
    assert sum(found["results"][0]["counts"]) == 1
