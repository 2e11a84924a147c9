"""Deletions of many requests keep exact sums and need a bounded number of queries and bounded memory."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from analytics.clickhouse import client
from analytics.deletion import batches
from analytics.models import Deletion
from analytics.reconciliation.services import reconcile
from analytics.request_log.record import SpoolEntry
from core.models import Project
from tests.analytics.deletion.deleting import SESSION, entry, erase, found_in_search, path_of, soon, totals
from tests.factories.analytics import store
from tests.night import cases, examples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]


# The kind of each deletion, of a session or of any request, and the session.
DELETED = cases(
    [("s", "b"), ("r", ""), ("s", "é"), ("r", ""), ("r", ""), ("s", "c/d")],
    by_day=[("s", "é"), ("r", ""), ("s", "c/d")],
)


def test_session__deleted__runs_no_more_queries_than_reading_it_does(
    api: APIClient, stored: list[SpoolEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleting a session with one request once took 39 statements, a second or two."""
    queries: list[str] = []
    query, execute = client.query, client.execute

    def noting_query(sql: str, *arguments: Any, **options: Any) -> Any:
        queries.append(sql)
        return query(sql, *arguments, **options)

    def noting_execute(sql: str, *arguments: Any, **options: Any) -> Any:
        queries.append(sql)
        return execute(sql, *arguments, **options)

    monkeypatch.setattr(client, "query", noting_query)
    monkeypatch.setattr(client, "execute", noting_execute)
    assert api.get(path_of(SESSION)).status_code == 200
    reading = len(queries)

    assert api.delete(path_of(SESSION)).status_code == 204

    assert 0 < len(queries) - reading <= reading
    assert all(sql.lstrip().startswith("SELECT") for sql in queries)


def test_many_requests__deleted_in_several_batches__counted_once(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_REQUESTS_AT_ONCE", 7)
    store(spool, *(entry(project, minute, user_id=f"u{minute % 3}", session_id="long") for minute in range(16)))
    before = totals(api, project)

    erase(api, "/api/llm/sessions/long")

    assert Deletion.objects.get().requests == 16
    assert totals(api, project) == before
    assert reconcile([project.pk], now=soon(26 * 60)).differences == []


def test_deletions__any_of_any_requests__sums_and_users_as_in_plain_arithmetic(
    api: APIClient, project: Project, spool: Path
) -> None:
    chance = random.Random(11)
    entries = [
        entry(
            project,
            chance.randrange(examples(2, 5) * 24 * 60),
            session_id=chance.choice(["", "a", "b", "c/d", "é"]),
            user_id=chance.choice(["", "u1", "u2", "u'3"]),
            retention_days=chance.choice([300, 400]),
            cost_usd=f"{chance.randrange(10)}.{chance.randrange(10**10):010d}",
            latency_ms=chance.randrange(10_000),
        )
        for _ in range(80)
    ]
    store(spool, *entries)
    before = totals(api, project)
    left = {one.record.request_id: one.record for one in entries}

    for kind, session_id in DELETED:
        request_id = chance.choice(sorted(left))
        path = path_of(session_id) if kind == "s" else f"/api/llm/requests/{request_id}"
        erase(api, path)
        gone = [
            key for key, one in left.items() if (one.session_id == session_id if kind == "s" else key == request_id)
        ]
        for key in gone:
            del left[key]

    where = "WHERE project_id = {project:UUID}"
    users = client.execute(
        f"SELECT user_id, sum(requests), sum(cost_usd) FROM users_daily {where} AND user_id != '' GROUP BY user_id",  # noqa: S608
        {"project": project.pk},
    )
    expected: dict[str, tuple[int, Decimal]] = {}
    for one in left.values():
        count, cost = expected.get(one.user_id, (0, Decimal(0)))
        expected[one.user_id] = (count + 1, cost + Decimal(one.cost_usd))
    expected.pop("", None)
    assert {user: (count, cost) for user, count, cost in users} == expected
    sessions = {row["session_id"]: row["request_count"] for row in api.get("/api/llm/sessions").json()["results"]}
    assert sessions == Counter(one.session_id for one in left.values() if one.session_id)
    assert found_in_search(api, limit=100) == len(left)
    assert totals(api, project) == before
    assert reconcile([project.pk], now=soon(26 * 60)).differences == []


def test_statements__of_a_deletion__use_less_than_200_mib(
    api: APIClient, stored: list[SpoolEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []
    execute = client.execute

    def noting(sql: str, params: Any = None, settings: Any = None, **options: Any) -> Any:
        limits.append((settings or {}).get("max_memory_usage", 2**63))
        return execute(sql, params, settings, **options)

    monkeypatch.setattr(client, "execute", noting)
    erase(api, path_of(SESSION))
    assert max(limits) < 200 * 1024 * 1024
