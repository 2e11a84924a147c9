"""The rollup of latencies: its filling from the requests of an older store, and pages of lists found by it."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from analytics.clickhouse import client, migrator
from analytics.errors import AnalyticsQueryError
from analytics.queries.request_filters import RequestFilter
from analytics.queries.request_pages import list_page
from analytics.queries.request_sorting import RequestSort
from analytics.reconciliation.services import reconcile
from tests.analytics.old_stores import migrate_before
from tests.analytics.test_migrations import failing_after

_FILL = """
INSERT INTO ingest (project_id, ts, request_id, outcome, status_code, provider, model, latency_ms, retention_days)
SELECT
    {project:UUID}, now64(6) - toIntervalHour(number % 72) - toIntervalMicrosecond(number), generateUUIDv4(),
    if(number % 10 = 0, 'error', 'success'), 200, 'openai', 'm', number, 400
FROM numbers({rows:UInt64})
"""


@pytest.fixture
def old_store(empty_store: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> uuid.UUID:
    """A project in a store of the release before."""
    migrate_before(44, monkeypatch, tmp_path)
    project = uuid.uuid4()
    client.execute(_FILL, {"project": project, "rows": 90})
    return project


@pytest.mark.django_db
def test_upgrade__store_with_data__counts_and_slowest_of_old_and_new_requests(old_store: uuid.UUID) -> None:
    migrator.migrate()

    assert _slowest(old_store) == (40, [89, 88, 87])
    client.execute(_FILL, {"project": old_store, "rows": 60})
    assert _slowest(old_store) == (50, [89, 88, 87])
    later = datetime.now(UTC) + timedelta(days=2)
    assert list(reconcile([old_store], now=later, dry_run=True).differences) == []


@pytest.mark.django_db
def test_slowest__rollup_has_requests_that_have_expired__page_of_those_that_are_left(old_store: uuid.UUID) -> None:
    migrator.migrate()
    client.execute(
        "INSERT INTO request_latencies (project_id, latency_ms, day, outcome, drop_date, requests)"
        " SELECT {project:UUID}, 1000 + number, today(), 'success', today() + 400, 5 FROM numbers(3)",
        {"project": old_store},
    )

    _, page = list_page(old_store, RequestFilter(), RequestSort.SLOWEST, limit=3)

    assert [row.latency_ms for row in page.rows] == [89, 88, 87]
    assert page.after


@pytest.mark.django_db
def test_upgrade__broken_off_after_any_statement__goes_on_to_the_same_end(
    old_store: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrator.migrate()
    [migration] = [one for one in migrator.load_migrations() if one.name == "0044_request_latencies"]
    client.execute("DELETE FROM schema_migrations WHERE number = 44", settings={"lightweight_deletes_sync": 1})

    for allowed in range(len(list(migration.statements()))):
        with monkeypatch.context() as patched:
            patched.setattr(client, "execute", failing_after(allowed))
            patched.setattr(migrator, "load_migrations", lambda: [migration])
            with pytest.raises(AnalyticsQueryError):
                migrator.migrate()

    migrator.migrate()

    assert _slowest(old_store) == (40, [89, 88, 87])


def _slowest(project: uuid.UUID) -> tuple[int, list[int]]:
    """Returns the number of requests of 50 ms and more, and the latencies of the slowest."""
    count, page = list_page(project, RequestFilter(min_latency_ms=50), RequestSort.SLOWEST, limit=3)
    assert page.after
    return count, [row.latency_ms for row in page.rows]
