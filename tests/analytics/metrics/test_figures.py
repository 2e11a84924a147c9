"""Every metrics endpoint gives the figures that plain Python computes, for ranges of every kind."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from analytics.parameters.ranges import TimeRange
from analytics.presenters import metrics
from analytics.queries import users
from analytics.queries.summed import Scope
from analytics.request_log.record import RequestRecord
from core.wire.shown import shown
from tests.analytics.metrics import reference
from tests.analytics.metrics.conftest import NOW, OPERATIONS, Api, KeptRecords
from tests.analytics.metrics.reference import latencies
from tests.night import cases, examples

pytestmark = pytest.mark.django_db

_TICK = timedelta(microseconds=1)
_UNITS = (timedelta(minutes=1), timedelta(hours=1), timedelta(days=1))


@pytest.fixture
def api(kept_records: KeptRecords) -> Api:
    return kept_records.api


@pytest.fixture
def records(kept_records: KeptRecords) -> list[RequestRecord]:
    return kept_records.records


def ranges(records: list[RequestRecord], count: int) -> Iterator[tuple[datetime, datetime]]:
    """Yields ranges between times of requests, borders of minutes, hours and days, and times just beside them, `count`
    by night and a third of them by day; also ranges of one microsecond, and ranges before and after all requests."""
    chance = random.Random()  # The seed differs from run to run; the message of the assertion names the failed range.
    yield NOW - timedelta(days=29), NOW
    yield NOW + timedelta(days=1), NOW + timedelta(days=40)
    yield NOW - timedelta(days=90), NOW - timedelta(days=60)
    moment = _moment(records[0])
    yield moment, moment
    yield moment - timedelta(days=1), moment - _TICK
    for _ in range(examples(-(-count // 3), count)):
        first, second = sorted(_border(chance, records) for _ in range(2))
        yield first, second


def _border(chance: random.Random, records: list[RequestRecord]) -> datetime:
    moment = _moment(chance.choice(records))
    if chance.random() < 0.5:
        unit = chance.choice(_UNITS)
        moment -= timedelta(microseconds=reference.microseconds(moment) % (unit // _TICK))
    return moment + chance.choice([-1, 0, 0, 1]) * _TICK


def _moment(record: RequestRecord) -> datetime:
    return datetime.fromisoformat(reference.iso(record.ts))


def without_percentiles(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if not name.startswith(("p50_", "p95_", "p99_"))}


def check_percentiles(entry: Mapping[str, Any], kind: str, values: list[int]) -> None:
    for name, level in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        found = entry[f"{name}_{kind}_ms"]
        if values:
            assert reference.rank_error(values, level, found) <= 0.01, (name, kind, found, len(values))
        else:
            assert found is None


def test_users__any_range__equal_plain_computation(get: Callable[..., Any], records: list[RequestRecord]) -> None:
    for start, end in ranges(records, 7):
        expected, unnamed = reference.users(reference.between(records, start, end))

        found = get("users", start_date=start, end_date=end, limit=100)

        assert (found["results"], found["without_user_id"]) == (expected, unnamed), (start, end)
        assert found["count"] == len(expected)


def test_totals_compared__any_two_ranges__equal_the_totals_of_each(api: Api, records: list[RequestRecord]) -> None:
    for start, end in ranges(records, 7):
        periods = TimeRange(start, end), TimeRange(start - (end - start) * 0.7, start - _TICK)

        found = metrics.totals_compared(UUID(api[1]), *periods)

        for period, totals in zip(periods, found, strict=True):
            expected = metrics.totals(UUID(api[1]), period)
            entry = {"start_date": period.start, "end_date": period.end, **shown(totals)}
            assert without_percentiles(entry) == without_percentiles(expected), period
            chosen = reference.between(records, period.start, period.end)
            check_percentiles(entry, "latency", latencies(chosen))
            check_percentiles(entry, "ttft", [record.ttft_ms for record in chosen if record.ttft_ms])


@pytest.mark.parametrize("near", [0, users._NEAR_THE_TOP])
def test_top_users__any_range__equal_plain_computation(
    api: Api, records: list[RequestRecord], monkeypatch: pytest.MonkeyPatch, near: int
) -> None:
    monkeypatch.setattr(users, "_NEAR_THE_TOP", near)
    for start, end in ranges(records, 10):
        expected, _ = reference.users(reference.between(records, start, end))

        found = users.top_users(Scope(UUID(api[1]), start, end), limit=3)

        assert [(row.user_id, row.request_count, row.error_rate, float(row.total_cost_usd)) for row in found] == [
            (row["user_id"], row["request_count"], row["error_rate"], row["total_cost_usd"]) for row in expected[:3]
        ], (start, end)


@pytest.mark.parametrize("near", cases([0, 1, users._NEAR_THE_TOP], by_day=[0, users._NEAR_THE_TOP]))
def test_users__pages_of_any_range__equal_plain_computation(
    get: Callable[..., Any], records: list[RequestRecord], monkeypatch: pytest.MonkeyPatch, near: int
) -> None:
    """The answer is right however small the number is from which bounds of users are not used."""
    monkeypatch.setattr(users, "_NEAR_THE_TOP", near)
    for start, end in ranges(records, 3):
        expected, unnamed = reference.users(reference.between(records, start, end))

        for offset, limit in ((0, 1), (0, 4), (3, 2), (27, 5)):
            found = get("users", start_date=start, end_date=end, limit=limit, offset=offset)

            assert found["results"] == expected[offset : offset + limit], (start, end, offset)
            assert (found["count"], found["without_user_id"]) == (len(expected), unnamed)


def test_models__any_range__equal_plain_computation(get: Callable[..., Any], records: list[RequestRecord]) -> None:
    for start, end in ranges(records, 7):
        chosen = reference.between(records, start, end)

        found = get("models", start_date=start, end_date=end, limit=100)

        assert [without_percentiles(entry) for entry in found["results"]] == reference.models(chosen), (start, end)
        assert found["count"] == len(found["results"])
        for entry in found["results"]:
            own = [r for r in chosen if (r.model, r.provider) == (entry["model"], entry["provider"])]
            check_percentiles(entry, "latency", latencies(own))
            check_percentiles(entry, "ttft", [record.ttft_ms for record in own if record.ttft_ms])


def test_prompts__any_range__equal_plain_computation(get: Callable[..., Any], records: list[RequestRecord]) -> None:
    for start, end in ranges(records, 5):
        chosen = reference.between(records, start, end)
        for grouping in ("version", "config"):
            found = get("prompts", start_date=start, end_date=end, limit=100, group_by=grouping)

            expected = reference.prompts(chosen, by_version=grouping == "version")
            assert (found["results"], found["count"]) == (expected, len(expected)), (start, end)
            assert found["group_by"] == grouping
        one = get("prompts", start_date=start, end_date=end, prompt_config_id="0b000000-0000-4000-8000-000000000002")
        of_config = [record for record in chosen if record.prompt_config_id.endswith("2")]
        assert one["results"] == reference.prompts(of_config, by_version=True)


def test_costs__any_range__equal_plain_computation(get: Callable[..., Any], records: list[RequestRecord]) -> None:
    for start, end in ranges(records, 7):
        chosen = reference.between(records, start, end)

        by_model = get("cost/by-model", start_date=start, end_date=end, limit=100)
        daily = get("cost/daily", start_date=start, end_date=end, limit=1000)

        assert by_model["results"] == reference.model_costs(chosen), (start, end)
        assert by_model["total_cost_usd"] == float(reference.cost(chosen))
        assert daily["results"] == reference.daily_costs(chosen, start, end), (start, end)
        if by_model["total_cost_usd"]:
            assert sum(entry["percentage"] for entry in by_model["results"]) == pytest.approx(100, abs=1e-9)


def test_overview__any_range__equals_plain_computation(get: Callable[..., Any], records: list[RequestRecord]) -> None:
    for start, end in ranges(records, 7):
        begin = max(start, end - timedelta(days=30))

        found = get("overview", start_date=begin, end_date=end)

        expected = reference.overview(reference.between(records, begin, end))
        assert {name: found[name] for name in expected} == expected, (begin, end)


@pytest.mark.parametrize(("interval", "length"), [("minute", _UNITS[0]), ("hour", _UNITS[1]), ("day", _UNITS[2])])
def test_usage__any_range__equals_plain_computation(
    get: Callable[..., Any], records: list[RequestRecord], interval: str, length: timedelta
) -> None:
    for start, end in ranges(records, 4):
        begin = max(start, end - 600 * length)
        chosen = reference.between(records, begin, end)

        found = get("usage", start_date=begin, end_date=end, interval=interval, limit=1000)

        expected = reference.usage(chosen, begin, end, length)
        assert [without_percentiles(entry) for entry in found["results"]] == expected, (begin, end)
        assert (found["count"], found["interval"]) == (len(expected), interval)
        for entry in found["results"]:
            first = reference.microseconds(datetime.fromisoformat(entry["start"]))
            own = [r for r in chosen if first <= r.ts < first + length // _TICK]
            check_percentiles(entry, "latency", latencies(own))
            check_percentiles(entry, "ttft", [record.ttft_ms for record in own if record.ttft_ms])


def test_totals__any_range__equal_plain_computation(get: Callable[..., Any], records: list[RequestRecord]) -> None:
    for start, end in ranges(records, 7):
        chosen = reference.between(records, start, end)

        found = get("totals", start_date=start, end_date=end)

        expected = reference.sums(chosen)
        assert {name: found[name] for name in expected} == expected, (start, end)
        check_percentiles(found, "latency", latencies(chosen))
        check_percentiles(found, "ttft", [record.ttft_ms for record in chosen if record.ttft_ms])


def test_errors__any_range__equal_plain_computation(get: Callable[..., Any], records: list[RequestRecord]) -> None:
    for start, end in ranges(records, 7):
        expected = reference.errors(reference.between(records, start, end))

        found = get("errors", start_date=start, end_date=end, limit=100)

        assert found["results"] == expected, (start, end)
        assert (found["count"], found["total_errors"]) == (
            len(expected),
            sum(entry["error_count"] for entry in expected),
        )


def test_operations__any_range__equal_plain_computation(get: Callable[..., Any], records: list[RequestRecord]) -> None:
    for start, end in ranges(records, 7):
        chosen = reference.between(records, start, end)

        found = get("operations", start_date=start, end_date=end)

        assert [without_percentiles(entry) for entry in found["results"]] == reference.operations(chosen), (start, end)
        assert found["count"] == len(found["results"])
        for entry in found["results"]:
            own = [record for record in chosen if record.operation == entry["operation"]]
            check_percentiles(entry, "latency", latencies(own))
            check_percentiles(entry, "ttft", [record.ttft_ms for record in own if record.ttft_ms])


@pytest.mark.parametrize("operation", cases(sorted({*OPERATIONS, "rerank"}), by_day=["chat", "embeddings"]))
def test_figures__of_one_operation__equal_plain_computation_without_the_others(
    get: Callable[..., Any], records: list[RequestRecord], operation: str
) -> None:
    own = [record for record in records if record.operation == operation]
    for start, end in ranges(records, 2):
        begin = max(start, end - timedelta(days=30))
        chosen = reference.between(own, begin, end)
        named, unnamed = reference.users(chosen)
        parameters = {"start_date": begin, "end_date": end, "operation": operation, "limit": 1000}

        overview, users_found = (get(path, **parameters) for path in ("overview", "users"))
        by_model, usage = (get(path, **parameters) for path in ("models", "usage"))

        expected = reference.overview(chosen)
        assert {name: overview[name] for name in expected} == expected, (begin, end)
        assert (users_found["results"], users_found["without_user_id"]) == (named, unnamed), (begin, end)
        assert users_found["count"] == len(named)
        assert [without_percentiles(entry) for entry in by_model["results"]] == reference.models(chosen), (begin, end)
        assert sum(entry["request_count"] for entry in usage["results"]) == len(chosen), (begin, end)
        assert get("cost/daily", **parameters)["results"] == reference.daily_costs(chosen, begin, end), (begin, end)
        assert get("cost/by-model", **parameters)["results"] == reference.model_costs(chosen), (begin, end)
        assert get("errors", **parameters)["results"] == reference.errors(chosen), (begin, end)
