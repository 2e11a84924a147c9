from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from analytics.clickhouse import client
from analytics.contracts import AttemptRecord, SpoolEntry
from analytics.errors import AnalyticsQueryError, AnalyticsUnavailableError
from analytics.shipper import loop
from analytics.shipper.loop import Shipper
from analytics.shipper.spans import insert_spans
from analytics.spool.writer import SpoolWriter
from core.models import Project
from tests.analytics.telemetry.sending import SESSION, telemetry_of
from tests.factories.analytics import make_entry

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("telemetry", "clickhouse")]

DAY_US = 86_400_000_000


class Crash(BaseException):
    """An exception in the place of the death of the process."""


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    directory = tmp_path / "spool"
    directory.mkdir()
    return directory


def fill(spool: Path, *entries: SpoolEntry) -> None:
    writer = SpoolWriter(spool)
    for entry in entries:
        writer.append(entry)
    writer.close()


def entry(project: Project, **values: Any) -> SpoolEntry:
    attempt = AttemptRecord("openai", "gpt-4o-mini", 200, "", 100)
    return make_entry(project_id=str(project.pk), session_id=SESSION, attempts=(attempt,), **values)


def ship(spool: Path, spans: Any = insert_spans) -> None:
    shipper = Shipper(spool, insert_spans=spans)
    try:
        shipper.drain()
    finally:
        shipper.close()


def counts() -> tuple[int, int]:
    """Returns the requests and spans in the tables."""
    [(requests,)] = client.execute("SELECT count() FROM requests")
    [(spans,)] = client.execute("SELECT count() FROM otel_traces")
    return requests, spans


def test_ship__records__their_spans_belong_to_the_session(spool: Path, api: APIClient, project: Project) -> None:
    fill(spool, entry(project), entry(project))

    ship(spool)

    spans, logs = telemetry_of(api, project.pk)
    assert [span["span_kind"] for span in spans] == ["Server", "Client"] * 2
    assert [span["span_name"] for span in spans[:2]] == ["POST /api/gateway/v1/chat/completions", "chat gpt-4o-mini"]
    assert spans[1]["parent_span_id"] == spans[0]["span_id"]
    assert logs == []


@pytest.mark.parametrize("after", [False, True])
def test_ship__dies_around_the_spans__both_once_after_the_restart(spool: Path, project: Project, after: bool) -> None:
    fill(spool, *(entry(project) for _ in range(5)))

    def dying(located: Any, token: str) -> None:
        if after:
            insert_spans(located, token)
        raise Crash

    for _ in range(2):
        with pytest.raises(Crash):
            ship(spool, dying)
    ship(spool)

    assert counts() == (5, 10)


def test_ship__store_away_for_the_spans__sent_until_stored(
    spool: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_FIRST_RETRY_SECONDS", 0.001)
    monkeypatch.setattr(loop, "_QUICK_RETRY_SECONDS", 0.001)
    fill(spool, entry(project))
    failures = [AnalyticsUnavailableError("away")] * 4

    def away(located: Any, token: str) -> None:
        if failures:
            raise failures.pop()
        insert_spans(located, token)

    ship(spool, away)

    assert counts() == (1, 2)


def test_ship__spans_refused__records_are_kept_and_the_log_says_so(
    spool: Path, project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    fill(spool, entry(project), entry(project))

    def refuse(located: Any, token: str) -> None:
        raise AnalyticsQueryError("refused", server_code=53, reason="TYPE_MISMATCH")

    ship(spool, refuse)

    assert counts() == (2, 0)
    assert "spans.refused records=2 code=53" in caplog.messages


def test_ship__records_of_many_days__every_span_stored(spool: Path, project: Project) -> None:
    """A server takes at most a hundred days in one insert."""
    now = 1_795_258_025_000_000
    fill(spool, *(entry(project, ts=now + number * DAY_US) for number in range(130)))

    for _ in range(2):
        ship(spool)

    assert counts() == (130, 260)


def test_ship__switched_off__no_spans(spool: Path, project: Project) -> None:
    fill(spool, entry(project))

    ship(spool, None)

    assert counts() == (1, 0)
