"""While the store's tables are missing or of an earlier version, an endpoint answers as ever or 503, and never 500."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from analytics.clickhouse import client, migrator
from analytics.errors import AnalyticsMigratingError, AnalyticsQueryError
from core.models import Project
from tests.analytics.contract.endpoints import ENDPOINTS, Endpoint

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_store")]


def is_told_to_wait(answer: Any) -> bool:
    return (
        answer.status_code == 503
        and answer.json()["error"]["code"] == "analytics_unavailable"
        and int(answer.headers["Retry-After"]) > 0
    )


def is_usual(endpoint: Endpoint, answer: Any) -> bool:
    return answer.status_code in ((200, 202, 204, 404) if endpoint.method == "DELETE" else (200, 201, 202, 404))


def test_endpoints__no_tables__503_where_the_store_is_needed(api: APIClient, project: Project) -> None:
    answers = {f"{one.method} {one.path}": (one, one.call(api, project)) for one in ENDPOINTS}

    wrong = {
        name: (answer.status_code, answer.content[:200])
        for name, (endpoint, answer) in answers.items()
        if not (is_told_to_wait(answer) if endpoint.store else is_usual(endpoint, answer))
    }
    assert wrong == {}


def test_endpoints__tables_of_an_earlier_version__as_ever_or_503(api: APIClient, project: Project) -> None:
    """The store lacks a table of figures, a column of requests, and the migration that brings them."""
    migrator.migrate()
    for statement in (
        "DROP TABLE error_kinds_hourly_mv SYNC",
        "DROP TABLE error_kinds_hourly SYNC",
        "ALTER TABLE requests DROP COLUMN deployment",
        "TRUNCATE TABLE schema_migrations",
    ):
        client.execute(statement)
    answers = {f"{one.method} {one.path}": (one, one.call(api, project)) for one in ENDPOINTS}

    wrong = {
        name: (answer.status_code, answer.content[:200])
        for name, (endpoint, answer) in answers.items()
        if not (is_told_to_wait(answer) or is_usual(endpoint, answer))
    }
    assert wrong == {}
    assert any(is_told_to_wait(answer) for _, answer in answers.values())


def test_statement__wrong_in_a_store_that_has_all_tables__is_no_matter_of_waiting() -> None:
    with pytest.raises(AnalyticsMigratingError):
        client.execute("SELECT number FROM schema_migrations")
    migrator.migrate()

    with pytest.raises(AnalyticsQueryError) as caught:
        client.execute("SELECT there_is_no_such_column FROM requests")
    assert not isinstance(caught.value, AnalyticsMigratingError)
    assert caught.value.server_code == 47
