from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from rest_framework.test import APIClient

from core.models import Project
from core.roles import Role
from core.ui import formats
from tests.analytics.requests.entries import chat
from tests.factories.analytics import make_entry, store
from tests.factories.core import client_of, make_project, make_staff

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

ZONES = ("UTC", "America/New_York")
# Three days ago, whole in both zones, however late it is.
DAY = (datetime.now(UTC) - timedelta(days=3)).replace(hour=0, minute=0, second=0, microsecond=0)
# Of these hours the first is the day before in New York, and the last two are the day after in UTC.
HOURS = (1, 12, 23, 25, 26)

Ask = Callable[[str, dict[str, Any]], Any]
# The path of a page, and its figures as the API's answers to `ask` say them.
Figures = Callable[[Ask], list[str]]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = make_project()
    (tmp_path / "spool").mkdir()
    store(
        tmp_path / "spool",
        *(
            make_entry(
                **chat("Where is my parcel?", f"In hour {hour}."),
                project_id=str(made.pk),
                ts=int((DAY + timedelta(hours=hour)).timestamp()) * 1_000_000,
                cost_usd=str(Decimal(2) ** number),
                session_id=f"session-{hour}",
                user_id=f"user-{hour}",
                **(_FAILED if number % 2 else {}),
            )
            for number, hour in enumerate(HOURS)
        ),
    )
    return made


_FAILED: dict[str, Any] = {
    "outcome": "error",
    "status_code": 502,
    "error_type": "api_error",
    "error_code": "upstream_error",
}


PAGES: dict[str, Figures] = {
    "/admin/": lambda ask: [
        formats.number(ask("metrics/totals", {})["request_count"]),
        formats.share(ask("metrics/totals", {})["error_rate"]),
        formats.money(ask("metrics/totals", {})["total_cost_usd"]),
        *(row["user_id"] for row in ask("metrics/users", {})["results"]),
    ],
    "/admin/analytics/requests/": lambda ask: [row["user_id"] for row in ask("requests", {})["results"]],
    "/admin/analytics/sessions/": lambda ask: [row["session_id"] for row in ask("sessions", {})["results"]],
    "/admin/search/?q=parcel": lambda ask: [row["session_id"] for row in ask("requests", {})["results"]],
    "/admin/errors/": lambda ask: [
        formats.number(ask("metrics/errors/groups", {})["results"][0]["error_count"]),
        formats.share(ask("metrics/totals", {})["error_rate"]),
    ],
    "/admin/usage/?group_by=user": lambda ask: [
        text
        for row in ask("metrics/cost", {"group_by": "user"})["results"]
        for text in (row["key"], formats.money(row["total_cost_usd"]))
    ],
}


@pytest.mark.parametrize("path", PAGES)
def test_page__a_day_in_two_zones__has_the_figures_of_the_api(path: str, client: Client, project: Project) -> None:
    client.force_login(make_staff(Role.READER, project))
    shown = {}
    for zone in ZONES:
        bounds = _bounds(zone)
        figures = PAGES[path](_asking(client_of(project), bounds))
        text = _text(client, path, project, zone)
        missing = [figure for figure in figures if figure not in text]
        assert not missing, (zone, missing)
        shown[zone] = figures
        others = {f"user-{hour}" for hour in HOURS if not _within(hour, bounds)}
        assert not [user for user in others if f"{user}<" in text or f'"{user}"' in text], zone
    # The day has other requests in each zone, so figures of the wrong zone would have been noticed.
    assert shown["UTC"] != shown["America/New_York"]


def _bounds(zone: str) -> tuple[datetime, datetime]:
    start = DAY.replace(tzinfo=ZoneInfo(zone))
    return start.astimezone(UTC), (start + timedelta(days=1)).astimezone(UTC) - timedelta(microseconds=1)


def _within(hour: int, bounds: tuple[datetime, datetime]) -> bool:
    return bounds[0] <= DAY + timedelta(hours=hour) <= bounds[1]


def _asking(api: APIClient, bounds: tuple[datetime, datetime]) -> Ask:
    def ask(path: str, query: dict[str, Any]) -> Any:
        start, end = (bound.isoformat() for bound in bounds)
        answer = api.get(f"/api/llm/{path}", {**query, "start_date": start, "end_date": end})
        assert answer.status_code == 200, answer.content
        return answer.json()

    return ask


def _text(client: Client, path: str, project: Project, zone: str) -> str:
    day = DAY.date().isoformat()
    query = {"project": str(project.pk), "range": "custom", "start": day, "end": day}
    client.get(path, {**query, "tz": zone})
    page, _, more = path.partition("?")
    chosen = dict(pair.split("=") for pair in more.split("&") if pair)
    answer = client.get(page, {**query, **chosen})
    assert answer.status_code == 200
    return b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
