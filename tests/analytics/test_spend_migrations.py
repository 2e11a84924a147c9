"""The upgrade of a store without figures by key and by kind of error: they are filled from the requests there are."""

from __future__ import annotations

import shutil
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from analytics.clickhouse import client, migrator
from analytics.errors import AnalyticsQueryError
from analytics.parameters.ranges import TimeRange
from analytics.presenters.errors import error_groups
from analytics.presenters.spend import cost_by
from analytics.queries.dimensions import Dimension
from analytics.reconciliation.services import reconcile
from core.wire.pagination import Page
from tests.analytics.test_migrations import failing_after

_FILL = """
INSERT INTO ingest (
    project_id, ts, request_id, outcome, status_code, api_key_id, source, provider, model, error_type, error_code,
    cost_known, cost_usd, retention_days
)
SELECT
    {project:UUID}, now64(6) - toIntervalHour(number % 72) - toIntervalMicrosecond(number), generateUUIDv4(),
    if(number % 10 = 0, 'error', 'success'), 200, number % 3, 'gateway', 'openai', toString(number % 2),
    if(number % 10 = 0, 'api_error', ''), if(number % 10 = 0, 'upstream_error', ''), true, 0.001, 400
FROM numbers({rows:UInt64})
"""


@pytest.fixture
def old_store(empty_store: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> uuid.UUID:
    """A project in a store of the release before."""
    (tmp_path / "before").mkdir()
    shutil.copy(migrator.MIGRATIONS / "0036_operation.sql", tmp_path / "before")
    with monkeypatch.context() as patched:
        patched.setattr(migrator, "MIGRATIONS", tmp_path / "before")
        migrator.migrate()
    project = uuid.uuid4()
    client.execute(_FILL, {"project": project, "rows": 90})
    return project


@pytest.mark.django_db
def test_upgrade__store_with_data__figures_of_the_requests_that_are_there(old_store: uuid.UUID) -> None:
    migrator.migrate()

    assert _figures(old_store) == ({"": 30, "1": 30, "2": 30}, 9)
    client.execute(_FILL, {"project": old_store, "rows": 30})
    assert _figures(old_store) == ({"": 40, "1": 40, "2": 40}, 12)
    later = datetime.now(UTC) + timedelta(days=2)
    assert list(reconcile([old_store], now=later, dry_run=True).differences) == []


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["0037_spend_hourly", "0038_error_kinds_hourly"])
def test_upgrade__broken_off_after_any_statement__goes_on_to_the_same_end(
    old_store: uuid.UUID, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    migrator.migrate()
    [migration] = [one for one in migrator.load_migrations() if one.name == name]
    client.execute(
        "DELETE FROM schema_migrations WHERE name = {name:String}",
        {"name": name},
        settings={"lightweight_deletes_sync": 1},
    )

    for allowed in range(len(list(migration.statements()))):
        with monkeypatch.context() as patched:
            patched.setattr(client, "execute", failing_after(allowed))
            patched.setattr(migrator, "load_migrations", lambda: [migration])
            with pytest.raises(AnalyticsQueryError):
                migrator.migrate()

    migrator.migrate()

    assert _figures(old_store) == ({"": 30, "1": 30, "2": 30}, 9)


def _figures(project: uuid.UUID) -> tuple[dict[str, int], int]:
    """Returns the requests by key, and the number of errors."""
    now = datetime.now(UTC)
    days = TimeRange(now - timedelta(days=5), now)
    costs = cost_by(project, Dimension.API_KEY, days, Page(10, 0)).results
    errors = error_groups(project, days, Page(10, 0)).more["total_errors"]
    return {one["key"]: one["request_count"] for one in costs}, errors
