from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime

import pytest

from analytics.clickhouse import client
from analytics.telemetry import storage
from core.models import Project
from tests.analytics.telemetry.sending import Sender
from tests.factories.core import make_key

_TABLES = (
    "otel_traces", "otel_session_spans", "otel_trace_spans", "otel_logs", "otel_session_logs", "otel_trace_logs",
    "otel_session_traces",
)  # fmt: skip


@pytest.fixture
def telemetry(clickhouse_engine: None) -> Iterator[None]:
    """The tables of spans and logs, which are emptied afterwards."""
    yield
    for table in _TABLES:
        client.execute(f"TRUNCATE TABLE {table}")


@pytest.fixture(autouse=True)
def no_window(settings: object) -> None:
    """Makes posts not wait for others to join them."""
    settings.OTLP_WINDOW_SECONDS = 0.0  # type: ignore[attr-defined]  # pytest-django's fixture takes any name


@pytest.fixture(autouse=True)
def today(monkeypatch: pytest.MonkeyPatch) -> date:
    """The day on which all records of a test arrive, since the store keeps equal records of two days."""
    day, drop_date = datetime.now(UTC).date(), storage.drop_date
    monkeypatch.setattr(storage, "drop_date", lambda _: drop_date(day))
    return day


@pytest.fixture
def sender(project: Project) -> Sender:
    _, key = make_key(project, scopes=["gateway"])
    return Sender(key)
