"""The upgrade of a store whose requests have no operation: they become chat completions, and no figure differs."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from analytics.clickhouse import client, migrator
from analytics.errors import AnalyticsQueryError
from analytics.queries.request_filters import RequestFilter
from analytics.queries.requests import list_requests
from analytics.reconciliation.services import reconcile
from tests.analytics.request_counts import count_requests
from tests.analytics.test_migrations import failing_after
from tests.factories.analytics import make_entry, store

# The rows of a shipper of the release before: of three days, with and without names, each tenth failed.
_FILL = """
INSERT INTO ingest (
    project_id, ts, request_id, outcome, status_code, session_id, user_id, provider, model, error_type, latency_ms,
    ttft_ms, cost_known, cost_usd, retention_days
)
SELECT
    {project:UUID}, now64(6) - toIntervalHour(number % 72) - toIntervalMicrosecond(number), generateUUIDv4(),
    if(number % 10 = 0, 'error', 'success'), 200, ['', 'one', 'two'][number % 3 + 1], ['', 'ann'][number % 2 + 1],
    'openai', toString(number % 2), if(number % 10 = 0, 'api_error', ''), number, number % 5, true, 0.001, 400
FROM numbers({rows:UInt64})
"""


@pytest.fixture
def old_store(empty_store: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> uuid.UUID:
    """A project in a store without the operation."""
    (tmp_path / "none").mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(migrator, "MIGRATIONS", tmp_path / "none")
        migrator.migrate()
    project = uuid.uuid4()
    client.execute(_FILL, {"project": project, "rows": 90})
    return project


@pytest.mark.django_db
def test_upgrade__store_with_data__old_requests_are_chat_and_all_figures_agree(
    old_store: uuid.UUID, spool: Path
) -> None:
    before = _figures(old_store)
    migrator.migrate()

    assert _figures(old_store) == before
    assert _differences(old_store) == []
    assert _counts(old_store) == {"chat": 90, "messages": 0}

    # A shipper of the release before goes on for a while beside one of this release.
    client.execute(_FILL, {"project": old_store, "rows": 30})
    store(spool, *(make_entry(project_id=str(old_store), session_id="one", operation="messages") for _ in range(4)))
    store(spool, make_entry(project_id=str(old_store), user_id="ann"))

    assert _counts(old_store) == {"chat": 121, "messages": 4}
    assert count_requests(old_store).consistent
    assert _differences(old_store) == []


@pytest.mark.django_db
def test_upgrade__broken_off_after_any_statement__goes_on_to_the_same_end(
    old_store: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    [migration] = [one for one in migrator.load_migrations() if one.name == "0036_operation"]
    for number, allowed in enumerate(range(len(list(migration.statements()))), start=1):
        with monkeypatch.context() as patched:
            patched.setattr(client, "execute", failing_after(allowed))
            with pytest.raises(AnalyticsQueryError):
                migrator.migrate()
        client.execute(_FILL, {"project": old_store, "rows": 10})
        assert count_requests(old_store).requests == 90 + 10 * number

    migrator.migrate()

    assert _differences(old_store) == []
    assert count_requests(old_store).consistent


def _counts(project: uuid.UUID) -> dict[str, int]:
    return {
        operation: list_requests(project, RequestFilter(operation=operation), limit=1, offset=0)[0]
        for operation in ("chat", "messages")
    }


def _figures(project: uuid.UUID) -> list[Any]:
    return [
        client.execute(
            f"SELECT provider, model, sum(t.requests), sum(t.cost_usd), quantilesTDigestMerge(0.5, 0.99)(latency_q)"  # noqa: S608
            f" FROM {table} AS t WHERE project_id = {{project:UUID}} GROUP BY provider, model ORDER BY model",
            {"project": project},
        )
        for table in ("requests_minute", "requests_hourly", "requests_daily")
    ]


def _differences(project: uuid.UUID) -> list[Any]:
    """Returns the differences of every rollup from its requests, as if all days were over."""
    return list(reconcile([project], now=datetime.now(UTC) + timedelta(days=2), dry_run=True).differences)
