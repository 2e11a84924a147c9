"""The upgrade of a store whose failovers have to be found among the attempts of all requests."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from analytics.clickhouse import client, migrator
from analytics.queries.provider_history import list_failover_intervals, list_failovers
from tests.analytics.old_stores import migrate_before
from tests.analytics.request_counts import count_requests

# The rows of a shipper of the release before: of three requests one went on to another model, one to another
# deployment after a retry, and one was answered at the first attempt.
_FILL = """
INSERT INTO ingest (
    project_id, ts, request_id, outcome, status_code, provider, model, attempts, fallback_used, retry_count,
    retention_days
)
SELECT
    {project:UUID}, now64(6) - toIntervalHour(number % 72) - toIntervalMicrosecond(number), generateUUIDv4(),
    'success', 200, 'openai', 'm', [
        '[{"provider":"openai","model":"a","error":"timeout"},{"provider":"openai","model":"b"}]',
        '[{"provider":"openai","model":"a","error":"unavailable","deployment":"us"},'
            || '{"provider":"openai","model":"a","error":"unavailable","deployment":"us"},'
            || '{"provider":"openai","model":"a","deployment":"eu"}]',
        '[{"provider":"openai","model":"a"}]'
    ][number % 3 + 1], number % 3 = 0, if(number % 3 = 1, 2, 0), 400
FROM numbers({rows:UInt64})
"""


@pytest.fixture
def old_store(empty_store: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> uuid.UUID:
    """A project in a store of the release before."""
    migrate_before(43, monkeypatch, tmp_path)
    project = uuid.uuid4()
    client.execute(_FILL, {"project": project, "rows": 90})
    return project


def test_upgrade__store_with_data__old_and_new_requests_have_their_failovers(old_store: uuid.UUID) -> None:
    migrator.migrate()

    assert _failovers(old_store) == {"timeout": 30, "unavailable": 30}
    client.execute(_FILL, {"project": old_store, "rows": 30})
    assert _failovers(old_store) == {"timeout": 40, "unavailable": 40}
    assert count_requests(old_store).consistent


def test_upgrade__applied_twice__changes_nothing_more(old_store: uuid.UUID) -> None:
    migrator.migrate()
    [migration] = [one for one in migrator.load_migrations() if one.name == "0043_retried_attempts"]
    for statement in migration.statements():
        client.execute(statement)

    assert _failovers(old_store) == {"timeout": 30, "unavailable": 30}


def _failovers(project: uuid.UUID) -> dict[str, int]:
    now = datetime.now(UTC)
    start = now - timedelta(days=6)
    found = {one.error: one.requests for one in list_failovers(project, start, now)}
    assert sum(one.failovers for one in list_failover_intervals(project, start, now, 60)) == sum(found.values())
    return found
