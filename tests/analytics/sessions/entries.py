"""Requests of sessions, and the ids of listed sessions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from analytics.request_log.record import SpoolEntry
from core.models import Project
from tests.factories.analytics import make_entry

NOW = datetime.now(UTC).replace(microsecond=0)


def entry(project: Project, session: str, minutes_ago: float = 0.0, **values: Any) -> SpoolEntry:
    ts = int((NOW - timedelta(minutes=minutes_ago)).timestamp() * 1_000_000)
    return make_entry(project_id=str(project.pk), session_id=session, ts=ts, **values)


def ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.json()
    return [item["session_id"] for item in answer.json()["results"]]
