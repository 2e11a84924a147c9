"""An alert of a project, made through the API, and requests that it watches."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from analytics.request_log.record import Outcome
from core.models import Project
from gateway.alerts.delivery import deliver, due_deliveries
from gateway.figure_alerts.check import check_due_alerts
from gateway.tables.figure_alert import FigureAlert
from tests.factories.analytics import make_entry, store

ERRORS: dict[str, Any] = {
    "name": "Errors",
    "query": {"figure": "error_rate", "filters": {}},
    "condition": "above",
    "threshold": 0.2,
    "window_minutes": 60,
}

MakeAlert = Callable[..., FigureAlert]
Served = Callable[..., None]


@pytest.fixture
def webhook(api: APIClient, receiver: str) -> str:
    """The id of a channel to the receiver."""
    given = {"name": "On call", "kind": "webhook", "url": receiver}
    answer = api.post("/api/llm/alert-channels", given, format="json")
    assert answer.status_code == 201, answer.content
    return str(answer.json()["id"])


@pytest.fixture
def make_alert(api: APIClient, webhook: str) -> MakeAlert:
    def make(**given: Any) -> FigureAlert:
        answer = api.post("/api/llm/alerts", {**ERRORS, "channels": [webhook], **given}, format="json")
        assert answer.status_code == 201, answer.content
        return FigureAlert.objects.get(pk=answer.json()["id"])

    return make


@pytest.fixture
def served(project: Project, spool: Path) -> Served:
    """Stores requests of the project, of which some failed, so many minutes ago."""

    def store_requests(number: int, *, failed: int = 0, minutes_ago: float = 5, **values: Any) -> None:
        ended = int((datetime.now(UTC) - timedelta(minutes=minutes_ago)).timestamp() * 1_000_000)
        error: dict[str, Any] = {"outcome": Outcome.ERROR, "status_code": 503, "error_code": "provider_unavailable"}
        entries = [
            make_entry(ts=ended + index, project_id=str(project.pk), **values, **(error if index < failed else {}))
            for index in range(number)
        ]
        store(spool, *entries)

    return store_requests


def look_again(alert: FigureAlert) -> FigureAlert:
    """Has the alert looked at as the task does, and its messages delivered."""
    FigureAlert.objects.filter(pk=alert.pk).update(next_check_at=datetime.now(UTC) - timedelta(seconds=1))
    check_due_alerts()
    for delivery_id in due_deliveries():
        deliver(delivery_id)
    alert.refresh_from_db()
    return alert
