"""A store of the first release with data: the figures of before and after are the same, whatever was broken off."""

from __future__ import annotations

import random
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from analytics.clickhouse import client, migrator
from analytics.errors import AnalyticsQueryError
from analytics.queries.failures import list_failures
from analytics.queries.models import list_models
from analytics.queries.overview import get_overview
from analytics.queries.users import list_users
from tests.analytics.metrics import reference
from tests.analytics.metrics.conftest import NOW, make_request
from tests.analytics.test_migrations import first_release
from tests.factories.analytics import store

__all__ = ["first_release"]

pytestmark = pytest.mark.usefixtures("first_release")

START, END = NOW - timedelta(days=60), NOW
# Those of figures, as they were released.
_FILLED = [("0012_users_by_name", "0013_errors_and_first_tokens"), ("0030_users_hourly",)]


def figures(project: uuid.UUID) -> tuple[Any, ...]:
    users = list_users(project, START, END, limit=100, offset=0)
    return (
        get_overview(project, START, END),
        users,
        list_models(project, START, END, limit=100, offset=0),
        list_failures(project, START, END),
    )


def fill(spool: Path, project: uuid.UUID, seed: int) -> reference.Records:
    chance = random.Random(seed)
    entries = [make_request(chance, str(project)) for _ in range(120)]
    store(spool, *entries)
    return [entry.record for entry in entries]


def test_migrations__store_with_data__figures_of_all_requests(spool: Path) -> None:
    project = uuid.uuid4()
    old = fill(spool, project, 1)

    migrator.migrate()
    records = [*old, *fill(spool, project, 2)]

    overview, users, (_, models), failures = figures(project)
    names, _ = reference.users(records)
    assert [(row.user_id, row.requests, row.sessions, row.cost_usd) for row in users.page] == [
        (
            entry["user_id"],
            entry["request_count"],
            entry["session_count"],
            reference.cost(record for record in records if record.user_id == entry["user_id"]),
        )
        for entry in names
    ]
    assert overview.sessions == len({record.session_id for record in records} - {""})
    assert sum(row.streamed for row in models) == sum(record.ttft_ms > 0 for record in records)
    assert sum(row.requests for row in failures) == sum(reference.is_error(record) for record in records)


@pytest.mark.parametrize("names", _FILLED)
def test_migrations__broken_off_anywhere_and_run_again__same_figures(
    spool: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    project = uuid.uuid4()
    fill(spool, project, 3)
    everything = migrator.load_migrations()
    mine = [one for one in everything if one.name in names]
    earlier = [one for one in everything if one.number < mine[0].number]
    with monkeypatch.context() as patched:
        patched.setattr(migrator, "load_migrations", lambda: earlier)
        migrator.migrate()
    for migration in mine:
        for allowed in range(len(list(migration.statements(text_indexes="")))):
            with monkeypatch.context() as patched:
                patched.setattr(migrator, "load_migrations", lambda migration=migration: [migration])
                patched.setattr(client, "execute", _failing_after(allowed))
                with pytest.raises(AnalyticsQueryError):
                    migrator.migrate()
        with monkeypatch.context() as patched:
            patched.setattr(migrator, "load_migrations", lambda migration=migration: [migration])
            migrator.migrate()
    migrator.migrate()
    before = figures(project)

    client.execute("TRUNCATE TABLE schema_migrations")
    migrator.migrate()

    assert before[0].requests == 120
    assert figures(project) == before


def _failing_after(allowed: int) -> Any:
    """`client.execute` that fails from the statement after `allowed` statements of a migration on."""
    execute, left = client.execute, allowed

    def run(sql: str, *arguments: Any, **options: Any) -> list[tuple[Any, ...]]:
        nonlocal left
        if "schema_migrations" not in sql and not sql.startswith("SELECT"):
            left -= 1
            if left < 0:
                raise AnalyticsQueryError("broken off", server_code=0, reason="by the test")
        return execute(sql, *arguments, **options)

    return run
