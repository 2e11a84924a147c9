"""Every figure that can be charted or watched is what plain Python computes, however it is filtered and split."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from analytics.figures.query import FigureQuery, series_of, value_of, values_of
from analytics.figures.registry import FIGURES, FigureSource
from analytics.parameters.ranges import TimeRange
from analytics.queries.usage import Interval
from analytics.request_log.record import RequestRecord
from analytics.scores.sync.run import copy_due
from core.errors import ValidationError
from core.models import Project
from tests.analytics.metrics import reference
from tests.analytics.metrics.conftest import NOW, PROMPTS, Api, KeptRecords
from tests.factories.scores import make_score
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("kept_records")]

_PROMPT = PROMPTS[2]["prompt_config_id"]
_MONTH = TimeRange(NOW - timedelta(days=29), NOW)
_SUMS = [
    "request_count", "error_count", "error_rate", "cancelled_count", "unpriced_request_count", "prompt_tokens",
    "completion_tokens", "cache_read_tokens", "cache_write_tokens", "total_tokens", "total_cost_usd",
    "average_latency_ms",
]  # fmt: skip
_FILTERS: list[tuple[dict[str, str], Callable[[RequestRecord], bool]]] = [
    ({}, lambda record: True),
    ({"model": "a"}, lambda record: record.model == "a"),
    ({"operation": "chat"}, lambda record: record.operation == "chat"),
    ({"user_id": "u3"}, lambda record: record.user_id == "u3"),
    ({"api_key_id": str(2**40)}, lambda record: record.api_key_id == 2**40),
    ({"prompt_config_id": _PROMPT, "prompt_version": "2"}, lambda r: r.prompt_version == 2),
    (
        {"model": "b", "prompt_config_id": _PROMPT},
        lambda r: r.model == "b" and r.prompt_config_id == _PROMPT,
    ),
    ({"outcome": "error", "provider": "openai"}, lambda r: r.outcome == "error" and r.provider == "openai"),
]


@pytest.mark.parametrize(("filters", "fits"), _FILTERS, ids=lambda value: str(value) if isinstance(value, dict) else "")
def test_figures__any_filter__equal_plain_computation(
    kept_records: KeptRecords, filters: dict[str, str], fits: Callable[[RequestRecord], bool]
) -> None:
    project, kept = UUID(kept_records.api[1]), [one for one in kept_records.records if fits(one)]
    for length in (timedelta(days=29), timedelta(days=3), timedelta(hours=2)):
        shown = reference.between(kept, NOW - length, NOW)
        time_range, query = TimeRange(NOW - length, NOW), FigureQuery("request_count", filters=filters)
        expected = reference.sums(shown)

        [found] = values_of(project, query, [*_SUMS, "p95_latency_ms"], time_range)
        over_time = series_of(project, query, time_range, figures=["request_count", "total_cost_usd"])

        *values, p95 = found.values
        assert shown
        assert dict(zip(_SUMS, values, strict=True)) == pytest.approx(expected)
        assert p95 is not None
        assert reference.rank_error(reference.latencies(shown), 0.95, p95) <= 0.02
        counts, costs = (series.values for series in over_time.series)
        assert sum(count or 0 for count in counts) == len(shown)
        assert sum(cost or 0 for cost in costs) == pytest.approx(float(reference.cost(shown)))


_GROUPS: list[tuple[str, Callable[[RequestRecord], str]]] = [
    ("model", lambda record: record.model),
    ("provider", lambda record: record.provider),
    ("user", lambda record: record.user_id),
    ("api_key", lambda record: str(record.api_key_id or "")),
    ("source", lambda record: record.source),
    ("error_code", lambda record: record.error_code),
    ("outcome", lambda record: str(record.outcome)),
]


@pytest.mark.parametrize(("group_by", "key"), _GROUPS, ids=lambda value: value if isinstance(value, str) else "")
def test_figures__split_by_a_group__equal_plain_computation(
    kept_records: KeptRecords, group_by: str, key: Callable[[RequestRecord], str]
) -> None:
    project = UUID(kept_records.api[1])
    groups = reference.grouped(reference.between(kept_records.records, _MONTH.start, _MONTH.end), key)
    query = FigureQuery("request_count", group_by)

    rows = values_of(project, query, ["request_count", "error_count"], _MONTH, limit=100)
    over_time = series_of(project, query, _MONTH, top=3, interval=Interval.DAY)

    expected = {name: [len(of), sum(map(reference.is_error, of))] for name, of in groups.items()}
    assert {row.key: list(row.values) for row in rows} == expected
    assert [row.key for row in rows] == sorted(expected, key=lambda name: (-expected[name][0], name.encode()))
    top = {series.key: sum(value or 0 for value in series.values) for series in over_time.series}
    assert top == {row.key: row.values[0] for row in rows[:3]}


def test_figures__nothing_to_measure__sums_are_0_and_others_unknown(api: Api) -> None:
    project = UUID(api[1])

    values = {name: value_of(project, FigureQuery(name), _MONTH) for name in FIGURES}

    assert values == {name: 0 if figure.is_sum else None for name, figure in FIGURES.items()}


def test_series__without_requests__has_every_interval(api: Api) -> None:
    found = series_of(UUID(api[1]), FigureQuery("error_rate"), TimeRange(NOW - timedelta(hours=5), NOW))

    assert (found.interval, len(found.starts)) == (Interval.HOUR, 6)
    assert found.series[0].values == [None] * 6


@tabled
def test_figure_query__what_there_is_not__is_refused_by_name(given: Any, field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        FigureQuery.from_json(given)

    assert list(refused.value.details or {}) == [field]


def test_figure_query__as_json__is_read_back() -> None:
    query = FigureQuery("p95_latency_ms", "metadata", {"model": "a", "api_key_id": "3"}, "team")

    assert FigureQuery.from_json(query.as_json()) == query
    assert FigureQuery.from_json({"figure": "error_rate", "filters": {"api_key_id": 3, "model": ""}}) == FigureQuery(
        "error_rate", filters={"api_key_id": "3"}
    )


def test_figures__of_two_sources__do_not_go_together(api: Api) -> None:
    with pytest.raises(ValidationError, match="do not go together"):
        values_of(UUID(api[1]), FigureQuery("request_count"), ["request_count", "mean_score"], _MONTH)
    assert {figure.source for figure in FIGURES.values()} == set(FigureSource)


def test_scores__by_name_and_filter__have_mean_and_number(project: Project) -> None:
    for value, name in ((1, "tone"), (4, "tone"), (5, "length")):
        make_score(project, score_name=name, score_value=value)
    copy_due()
    time_range = TimeRange(datetime.now(UTC) - timedelta(hours=1), datetime.now(UTC))
    mean, of_tone = FigureQuery("mean_score", "score_name"), FigureQuery("mean_score", filters={"score_name": "tone"})

    rows = values_of(project.pk, mean, ["mean_score", "score_count"], time_range)
    over_time = series_of(project.pk, of_tone, time_range)

    assert [(row.key, list(row.values)) for row in rows] == [("length", [5, 1]), ("tone", [2.5, 2])]
    assert [value for value in over_time.series[0].values if value is not None] == [2.5]
    assert value_of(project.pk, of_tone, time_range) == 2.5
