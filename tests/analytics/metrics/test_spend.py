"""Cost by every dimension and its intervals are what plain Python computes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from analytics.queries.dimension_costs import by_keys, of_sessions
from analytics.request_log.record import RequestRecord
from tests.analytics.metrics import reference
from tests.analytics.metrics.conftest import NOW, Api, KeptRecords
from tests.analytics.metrics.test_figures import ranges

pytestmark = pytest.mark.django_db

Get = Callable[..., Any]
_TICK = timedelta(microseconds=1)
_LENGTHS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}


@pytest.fixture
def api(kept_records: KeptRecords) -> Api:
    return kept_records.api


@pytest.fixture
def records(kept_records: KeptRecords) -> list[RequestRecord]:
    return kept_records.records


KEYS: dict[str, Callable[[RequestRecord], str]] = {
    "model": lambda record: record.model,
    "provider": lambda record: record.provider,
    "deployment": lambda record: (record.attempts[-1].deployment if record.attempts else "") or record.provider,
    "user": lambda record: record.user_id,
    "api_key": lambda record: str(record.api_key_id) if record.api_key_id else "",
    "session": lambda record: record.session_id,
    "prompt": lambda record: record.prompt_config_id,
    "prompt_version": lambda record: (
        f"{record.prompt_config_id}/{record.prompt_version}" if record.prompt_config_id else ""
    ),
    "source": lambda record: record.source,
    "operation": lambda record: record.operation,
}


def groups_of(records: reference.Records, dimension: str) -> dict[str, reference.Records]:
    found = reference.grouped(records, KEYS[dimension])
    if dimension == "session":
        found.pop("", None)
    return found


def before(records: reference.Records, start: datetime, end: datetime) -> reference.Records:
    """Returns the requests of the range just before, which is as long as this one."""
    return reference.between(records, start - (end - start) - _TICK, start - _TICK)


def expected_costs(records: reference.Records, dimension: str, start: datetime, end: datetime) -> list[dict[str, Any]]:
    now, past = reference.between(records, start, end), before(records, start, end)
    groups, groups_before = groups_of(now, dimension), groups_of(past, dimension)
    spent = reference.cost(now)
    order = sorted(groups, key=lambda key: (-reference.cost(groups[key]), -len(groups[key]), key.encode()))
    return [
        {
            "key": key,
            "name": key,
            **reference.sums(groups[key]),
            "percentage": float(100 * reference.cost(groups[key]) / spent) if spent else 0.0,
            "previous": previous(groups_before.get(key, [])),
        }
        for key in order
    ]


def previous(records: reference.Records) -> dict[str, Any]:
    return {
        "request_count": len(records),
        "total_tokens": sum(record.prompt_tokens + record.completion_tokens for record in records),
        "total_cost_usd": float(reference.cost(records)),
    }


@pytest.mark.parametrize("dimension", KEYS)
def test_cost__any_range__equals_plain_computation(get: Get, records: list[RequestRecord], dimension: str) -> None:
    for start, end in ranges(records, 3):
        found = get("cost", group_by=dimension, start_date=start, end_date=end, limit=1000)

        expected = expected_costs(records, dimension, start, min(end, max(start, datetime.now(end.tzinfo))))
        assert found["results"] == expected, (start, end)
        assert found["count"] == len(expected)
        chosen = reference.between(records, start, end)
        assert {name: found[name] for name in previous(chosen)} == previous(chosen)


@pytest.mark.parametrize("dimension", KEYS)
def test_cost__page_by_page__all_keys_once(get: Get, records: list[RequestRecord], dimension: str) -> None:
    query = {"group_by": dimension, "start_date": NOW - timedelta(days=20), "end_date": NOW}
    whole = get("cost", **query, limit=1000)

    pages = [get("cost", **query, limit=7, offset=offset) for offset in range(0, whole["count"] + 7, 7)]

    assert [entry for page in pages for entry in page["results"]] == whole["results"]
    assert {page["count"] for page in pages} == {whole["count"]}
    # As in every list, `previous` is the address of the page before.
    assert pages[0]["previous"] is None
    assert all(f"offset={7 * (number - 1)}" in page["previous"] for number, page in enumerate(pages) if number)
    assert all(set(page["range_before"]) > {"start_date", "end_date"} for page in pages)


def test_cost__more_sessions_than_are_read__pages_are_those_of_the_whole_list(
    get: Get, records: list[RequestRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = {"group_by": "session", "start_date": NOW - timedelta(days=20), "end_date": NOW}
    whole = get("cost", **query, limit=1000)

    monkeypatch.setattr(of_sessions, "_SESSIONS_BEYOND", 1)
    pages = [get("cost", **query, limit=3, offset=offset) for offset in range(0, whole["count"] + 3, 3)]

    assert [entry for page in pages for entry in page["results"]] == whole["results"]
    assert {page["count"] for page in pages} == {whole["count"]}


@pytest.mark.parametrize("dimension", ["model", "api_key", "prompt_version"])
def test_cost__more_keys_before_than_are_read__previous_figures_are_the_same(
    get: Get, records: list[RequestRecord], dimension: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = {"group_by": dimension, "start_date": NOW - timedelta(days=9), "end_date": NOW, "limit": 1000}
    whole = get("cost", **query)

    monkeypatch.setattr(by_keys, "_KEYS_BEFORE", 1)
    found = get("cost", **query)

    assert sum(entry["previous"]["request_count"] > 0 for entry in whole["results"]) > 1
    assert found == whole


def test_cost__page_behind_the_last_key__has_the_sums_of_all(get: Get, records: list[RequestRecord]) -> None:
    for dimension in ("model", "user", "session"):
        query = {"group_by": dimension, "start_date": NOW - timedelta(days=9), "end_date": NOW}
        whole = get("cost", **query, limit=1000)

        beyond = get("cost", **query, limit=3, offset=whole["count"])

        assert beyond["results"] == []
        sums = ("count", "request_count", "total_tokens", "total_cost_usd", "range_before")
        assert {name: beyond[name] for name in sums} == {name: whole[name] for name in sums}


def test_cost__of_one_operation__leaves_out_all_others(get: Get, records: list[RequestRecord]) -> None:
    chosen = [record for record in records if record.operation == "embeddings"]
    start, end = NOW - timedelta(days=9, minutes=7), NOW

    for dimension in KEYS:
        found = get("cost", group_by=dimension, start_date=start, end_date=end, operation="embeddings", limit=1000)

        assert found["results"] == expected_costs(chosen, dimension, start, end), dimension


@pytest.mark.parametrize("interval", _LENGTHS)
@pytest.mark.parametrize("dimension", KEYS)
def test_cost_intervals__top_and_other__equal_plain_computation(
    get: Get, records: list[RequestRecord], dimension: str, interval: str
) -> None:
    length = _LENGTHS[interval]
    start, end = NOW - 40 * length - timedelta(seconds=77), NOW
    chosen = reference.between(records, start, end)
    top = [entry["key"] for entry in expected_costs(records, dimension, start, end)][:3]
    unit = length // _TICK
    first, last = (reference.microseconds(moment) // unit for moment in (start, end))
    numbers = range(first, last + 1)

    found = get("cost/intervals", group_by=dimension, start_date=start, end_date=end, interval=interval, top=3)

    assert found["starts"] == [reference.iso(number * unit) for number in numbers]
    assert [one["key"] for one in found["series"]] == top
    for one in [*found["series"], found["other"]]:
        own = [
            record
            for record in chosen
            if (
                KEYS[dimension](record) == one["key"]
                if one is not found["other"]
                else KEYS[dimension](record) not in top
            )
        ]
        by_number = reference.grouped(own, lambda record: record.ts // unit)
        assert one["request_count"] == [len(by_number.get(number, [])) for number in numbers], one["key"]
        costs = [float(reference.cost(by_number.get(number, []))) for number in numbers]
        assert one["total_cost_usd"] == costs, one["key"]


def test_cost_intervals__too_many__400_that_names_the_interval(api: Api) -> None:
    query = {"start_date": "2026-01-01", "end_date": "2026-11-01", "interval": "hour"}

    answer = api[0].get("/api/llm/metrics/cost/intervals", query)

    assert answer.status_code == 400
    assert "interval" in answer.json()["error"]["details"]
