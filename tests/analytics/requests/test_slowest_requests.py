"""Pages of the slowest requests, which the rollup of latencies finds."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import pytest

from analytics.clickhouse import client
from analytics.queries import visible
from analytics.queries.request_filters import RequestFilter
from analytics.queries.request_pages import list_page
from analytics.queries.request_sorting import RequestSort

_FILL = """
INSERT INTO ingest (project_id, ts, request_id, outcome, status_code, provider, model, latency_ms, retention_days)
SELECT
    {project:UUID}, now64(6) - toIntervalHour(number % 72) - toIntervalMicrosecond(number), generateUUIDv4(),
    if(number % 10 = 0, 'error', 'success'), 200, 'openai', 'm', number, 400
FROM numbers({rows:UInt64})
"""


@pytest.fixture
def project(clickhouse: None) -> uuid.UUID:
    """A project with a request of each latency from 0 to 89 ms."""
    project = uuid.uuid4()
    client.execute(_FILL, {"project": project, "rows": 90})
    return project


@pytest.mark.django_db
def test_slowest__requests_above_a_bound__count_and_page(project: uuid.UUID) -> None:
    assert _slowest(project) == (40, [89, 88, 87])
    client.execute(_FILL, {"project": project, "rows": 60})
    assert _slowest(project) == (50, [89, 88, 87])


@pytest.mark.django_db
def test_slowest__rollup_has_requests_that_have_expired__page_of_those_that_are_left(project: uuid.UUID) -> None:
    client.execute(
        "INSERT INTO request_latencies (project_id, latency_ms, day, outcome, drop_date, requests)"
        " SELECT {project:UUID}, 1000 + number, today(), 'success', today() + 400, 5 FROM numbers(3)",
        {"project": project},
    )

    _, page = list_page(project, RequestFilter(), RequestSort.SLOWEST, limit=3)

    assert [row.latency_ms for row in page.rows] == [89, 88, 87]
    assert page.after


@pytest.mark.django_db
def test_slowest__failed_ones__are_found_by_the_index_of_their_latencies(
    project: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[str] = []
    query = visible.query

    def explained(sql: str, params: Mapping[str, Any], **options: Any) -> Any:
        rows = client.execute(f"EXPLAIN indexes = 1 {sql}", params)
        plans.append("\n".join(line for (line,) in rows))
        return query(sql, params, **options)

    monkeypatch.setattr(visible, "query", explained)
    count, page = list_page(project, RequestFilter(outcome="error"), RequestSort.SLOWEST, limit=3)

    assert (count, [row.latency_ms for row in page.rows]) == (9, [80, 70, 60])
    assert "i_failed_latency" in plans[-1]


def _slowest(project: uuid.UUID) -> tuple[int, list[int]]:
    """Returns the number of requests of 50 ms and more, and the latencies of the slowest."""
    count, page = list_page(project, RequestFilter(min_latency_ms=50), RequestSort.SLOWEST, limit=3)
    assert page.after
    return count, [row.latency_ms for row in page.rows]
