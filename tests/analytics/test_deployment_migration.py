"""The upgrade of a store whose requests have the deployment in their attempts alone."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from analytics.clickhouse import client, migrator
from analytics.parameters.ranges import TimeRange
from analytics.presenters.spend import cost_by
from analytics.queries.dimensions import Dimension
from analytics.reconciliation.services import reconcile
from core.wire.pagination import Page
from tests.analytics.old_stores import migrate_before
from tests.analytics.request_counts import count_requests

# The rows of a shipper of the release before: each third at one of two deployments or at a provider without names, and
# the first of them after another deployment had failed.
_FILL = """
INSERT INTO ingest (
    project_id, ts, request_id, outcome, status_code, provider, model, attempts, cost_known, cost_usd, retention_days
)
SELECT
    {project:UUID}, now64(6) - toIntervalHour(number % 72) - toIntervalMicrosecond(number), generateUUIDv4(),
    'success', 200, 'openai', 'm', [
        '[{"provider":"openai","error":"timeout","deployment":"us"},{"provider":"openai","deployment":"eu"}]',
        '[{"provider":"openai","model":"m","status":200,"deployment":"us"}]',
        '[{"provider":"openai","model":"m","status":200}]'
    ][number % 3 + 1], true, 0.001, 400
FROM numbers({rows:UInt64})
"""


@pytest.fixture
def old_store(empty_store: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> uuid.UUID:
    """A project in a store of the release before."""
    migrate_before(41, monkeypatch, tmp_path)
    project = uuid.uuid4()
    client.execute(_FILL, {"project": project, "rows": 90})
    return project


@pytest.mark.django_db
def test_upgrade__store_with_data__old_and_new_requests_have_their_deployment(old_store: uuid.UUID) -> None:
    migrator.migrate()

    assert _requests(old_store) == {"eu": 30, "us": 30, "openai": 30}
    client.execute(_FILL, {"project": old_store, "rows": 30})
    assert _requests(old_store) == {"eu": 40, "us": 40, "openai": 40}
    assert count_requests(old_store).consistent
    later = datetime.now(UTC) + timedelta(days=2)
    assert list(reconcile([old_store], now=later, dry_run=True).differences) == []


@pytest.mark.django_db
def test_upgrade__applied_twice__changes_nothing_more(old_store: uuid.UUID) -> None:
    migrator.migrate()
    [migration] = [one for one in migrator.load_migrations() if one.name == "0041_deployments"]
    for statement in migration.statements():
        client.execute(statement)

    assert _requests(old_store) == {"eu": 30, "us": 30, "openai": 30}


def _requests(project: uuid.UUID) -> dict[str, int]:
    now = datetime.now(UTC)
    found = cost_by(project, Dimension.DEPLOYMENT, TimeRange(now - timedelta(days=10), now), Page(10, 0))
    return {one["key"]: one["request_count"] for one in found.results}
