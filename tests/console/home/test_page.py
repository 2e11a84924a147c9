from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from analytics.clickhouse import client
from analytics.errors import AnalyticsUnavailableError
from analytics.presenters import metrics
from analytics.request_log.record import Outcome
from console.home import tables
from core.models import Project
from core.ui import formats
from gateway.reports import log_looks
from rollouts.services import roll_back_rollout
from tests.console.pages import shown
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_project, make_staff
from tests.factories.prompts import make_config
from tests.factories.rollouts import make_rollout
from tests.factories.settings import make_settings

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

PATH = "/admin/"


@pytest.fixture
def traffic(project: Project, tmp_path: Path) -> tuple[datetime, datetime]:
    (tmp_path / "spool").mkdir()
    end = datetime.now(UTC).replace(microsecond=0)
    entries = [
        make_entry(
            project_id=str(project.pk),
            ts=int((end - timedelta(minutes=minute + 1)).timestamp()) * 1_000_000,
            outcome=Outcome.ERROR if minute % 4 == 0 else Outcome.SUCCESS,
            status_code=503 if minute % 4 == 0 else 200,
            error_type="service_unavailable_error" if minute % 4 == 0 else "",
            error_code="provider_unavailable" if minute % 4 == 0 else "",
            user_id=f"user {minute % 3} <b>",
            model=["gpt-4o", "claude"][minute % 2],
            latency_ms=100 * (minute + 1),
            ttft_ms=20 + minute,
            cost_usd=f"0.{minute + 1:04}",
        )
        for minute in range(200)
    ]
    store(tmp_path / "spool", *entries)
    return end - timedelta(hours=2), end


def custom(range_: tuple[datetime, datetime]) -> dict[str, str]:
    return {"range": "custom", "start": range_[0].isoformat(), "end": range_[1].isoformat()}


def test_home__tiles__equal_the_totals_of_the_api(
    reader: Client, project: Project, api: APIClient, traffic: tuple[datetime, datetime]
) -> None:
    make_settings(project, monthly_budget_usd=1000)
    start, end = traffic
    text = shown(reader, PATH, project, panel="tiles", **custom(traffic))
    totals = api.get("/api/llm/metrics/totals", {"start_date": start.isoformat(), "end_date": end.isoformat()}).json()
    month = api.get("/api/llm/usage").json()["month"]

    assert totals["request_count"] == 120
    for figure in (
        formats.number(totals["request_count"]),
        formats.share(totals["error_rate"]),
        formats.duration(totals["p95_latency_ms"]),
        formats.money(totals["total_cost_usd"]),
        formats.money(month["spent_usd"]),
        formats.money(month["forecast_usd"]),
        "of $1,000.00",
    ):
        assert figure in text
    assert "+50 %, before 80" in text


def test_home__plots__have_the_usage_of_the_api_until_now(
    reader: Client, project: Project, api: APIClient, traffic: tuple[datetime, datetime]
) -> None:
    start, end = traffic
    text = shown(reader, PATH, project, panel="plots", **custom(traffic))
    query = {"start_date": start.isoformat(), "end_date": end.isoformat(), "limit": "1000"}
    usage = api.get("/api/llm/metrics/usage", query).json()

    for entry in usage["results"]:
        begin = datetime.fromisoformat(entry["start"])
        row = f'<tr data-t="{int(begin.timestamp())}">'
        assert text.count(row) == 4
        answered = entry["request_count"] - entry["error_count"]
        assert f"<td>{answered}</td><td>{entry['error_count']}</td>" in text
    assert 'data-brush="/admin/analytics/requests/?project=' in text
    for title in ("Requests and errors per minute", "Latency", "Cost per minute", "Time to the first token"):
        assert f"<figcaption>{title}</figcaption>" in text


def test_home__tables__have_the_entries_of_the_api(
    reader: Client, project: Project, api: APIClient, traffic: tuple[datetime, datetime]
) -> None:
    make_rollout(make_config(project, versions=2), started=True, name="Shorter answers")
    start, end = traffic
    text = shown(reader, PATH, project, **custom(traffic))
    query = {"start_date": start.isoformat(), "end_date": end.isoformat()}
    for path in ("models", "users"):
        for entry in api.get(f"/api/llm/metrics/{path}", query).json()["results"]:
            assert formats.money(entry["total_cost_usd"]) in text
    for part in (
        "provider_unavailable",
        "claude",
        "user 1 &lt;b&gt;",
        "Shorter answers",
        "1 of 3, 10 %",
        f"/admin/analytics/users/{project.pk}/user%201",
    ):
        assert part in text
    assert "<b>" not in text


def test_home__its_queries__are_few(
    reader: Client, project: Project, traffic: tuple[datetime, datetime], monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    query = client.query

    def counted(*args: Any, name: str, **options: Any) -> Any:
        names.append(name)
        return query(*args, name=name, **options)

    monkeypatch.setattr(client, "query", counted)
    shown(reader, PATH, project, **custom(traffic))

    expected = [
        "requests.own",
        "errors",
        "models.page",
        "spend.project",
        "sums",  # of the last hour
        "totals.compared",
        "usage",
        "users.top",
    ]
    assert sorted(names) == sorted(expected)


def test_home__problems__each_with_its_page(
    reader: Client, project: Project, traffic: tuple[datetime, datetime]
) -> None:
    rollout = make_rollout(make_config(project, versions=2), started=True, name="Longer answers")
    roll_back_rollout(project_id=project.pk, rollout_id=rollout.pk, actor="test", reason="<i>Errors</i>")
    text = shown(reader, PATH, project, panel="problems")
    assert "of the requests of the last hour failed: 15 of" in text
    assert "outcome=error" in text
    assert f"/admin/rollouts/rollout/{rollout.pk}/change/" in text
    assert "&lt;i&gt;Errors" in text


def test_home__nothing_yet__says_the_next_step(reader: Client, project: Project) -> None:
    text = shown(reader, PATH, project)
    for part in (
        "No requests in this range.",
        "Nothing failed in this range.",
        "No data in this range.",
        "No rollout is",
    ):
        assert part in text


def test_home__store_away__says_so_and_shows_the_rest(
    reader: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise AnalyticsUnavailableError("The analytics store does not answer.")

    for name in ("totals_compared", "usage", "errors", "models"):
        monkeypatch.setattr(metrics, name, away)
    monkeypatch.setattr(log_looks, "get_sums", away)
    monkeypatch.setattr(tables, "top_users", away)
    first, text = shown(reader, PATH, project), shown(reader, PATH, project)
    assert "The request log answers late" in first
    assert "critical" not in first
    assert "The request log does not answer" in text
    assert text.count("The analytics store does not answer.") == 5
    assert "No rollout is running." in text


def test_home__without_a_role__no_figure_of_any_project(client: Client, project: Project) -> None:
    client.force_login(make_staff())
    answer = client.get(PATH, {"project": str(project.pk)})
    assert answer.status_code in (403, 404) or project.name not in answer.content.decode()


def test_home__another_project__not_found(reader: Client) -> None:
    assert reader.get(PATH, {"project": str(make_project().pk)}).status_code == 404


def test_tables__signed_in__are_djangos_lists(reader: Client) -> None:
    assert "/admin/rollouts/rollout/" in reader.get("/admin/tables/").content.decode()
