"""Alerts on figures, from requests in ClickHouse to what a receiver gets."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from rest_framework.test import APIClient

from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from core.models import ApiKey, Project
from gateway.alerts.secrets import secret_of
from gateway.figure_alerts import check
from gateway.figure_alerts.check import check_due_alerts, distance
from gateway.figure_alerts.look import look_at
from gateway.tables.figure_alert import FigureAlert
from gateway.tasks import check_alerts
from tests.factories.core import make_key
from tests.factories.prompts import make_config
from tests.gateway.alerts.figures.conftest import MakeAlert, Served, look_again
from tests.gateway.alerts.receiver import Receiver, verified

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

WEEK_MINUTES = 7 * 24 * 60


def received() -> list[dict[str, Any]]:
    return [json.loads(body) for _, body in Receiver.received]


def test_share_above__fires_once_is_signed_and_resolves(
    make_alert: MakeAlert, served: Served, project: Project
) -> None:
    alert = make_alert(min_requests=10)
    served(10, failed=4)

    assert look_again(alert).state == "firing"
    look_again(alert)

    ((headers, body),) = Receiver.received
    assert verified(headers, body, secret_of(project.pk))
    message = json.loads(body)
    assert (message["type"], message["state"]) == ("figure.alert", "firing")
    assert (message["alert_id"], message["figure"]) == (str(alert.pk), "error_rate")
    assert (message["value"], message["threshold"], message["measured_count"]) == (pytest.approx(0.4), 0.2, 10)
    assert message["message"] == "Share of requests that failed: 40 %. The alert fires above 20 % over 1 hour."
    assert message["url"].endswith(f"/admin/alerts/{alert.pk}/?project={project.pk}")

    served(20)
    assert look_again(alert).state == "ok"
    look_again(alert)
    assert [one["state"] for one in received()] == ["firing", "resolved"]
    assert len({one["id"] for one in received()}) == 2


def test_alert__below_its_minimum_of_requests__no_data_and_nothing_sent(make_alert: MakeAlert, served: Served) -> None:
    alert = make_alert(min_requests=11)
    served(10, failed=10)

    found = look_again(alert)

    assert (found.state, found.measured_count, found.value) == ("no_data", 10, None)
    assert found.problem == "There were 10 in the window, and at least 11 are needed."
    assert received() == []


def test_count_below__no_requests_at_all__fires(make_alert: MakeAlert) -> None:
    alert = make_alert(query={"figure": "request_count"}, condition="below", threshold=1, window_minutes=5)

    assert look_again(alert).state == "firing"
    assert received()[0]["value"] == 0


def test_change__against_the_same_window_of_last_week(make_alert: MakeAlert, served: Served) -> None:
    rises = make_alert(query={"figure": "request_count"}, condition="rises_by_percent", threshold=50)
    served(9)
    assert look_again(rises).state == "no_data"
    assert rises.problem.startswith("At the same time last week the figure was 0 or not there")

    served(6, minutes_ago=WEEK_MINUTES + 5)
    # These are in the window of neither week.
    served(50, minutes_ago=WEEK_MINUTES + 90)

    assert look_again(rises).state == "firing"
    assert (rises.value, rises.value_before) == (9, 6)
    assert received()[0]["message"] == (
        "Requests: 9, last week 6. The alert fires 50 % or more above the same time last week, over 1 hour."
    )
    falls = make_alert(name="Fewer", query={"figure": "request_count"}, condition="falls_by_percent", threshold=20)
    assert look_again(falls).state == "ok"


def test_filters__only_what_matches_counts(make_alert: MakeAlert, served: Served) -> None:
    alert = make_alert(query={"figure": "error_rate", "filters": {"model": "gpt-4o"}})
    served(5, failed=5, model="gpt-4o-mini")
    served(5, model="gpt-4o")

    assert look_again(alert).state == "ok"
    assert alert.measured_count == 5


def test_repetition__while_it_fires_as_set(make_alert: MakeAlert, served: Served) -> None:
    alert = make_alert(repeat_minutes=30)
    served(10, failed=4)
    look_again(alert)
    FigureAlert.objects.filter(pk=alert.pk).update(told_at=datetime.now(UTC) - timedelta(minutes=29))
    look_again(alert)
    assert len(received()) == 1

    FigureAlert.objects.filter(pk=alert.pk).update(told_at=datetime.now(UTC) - timedelta(minutes=30))
    look_again(alert)
    look_again(alert)

    assert [one["state"] for one in received()] == ["firing", "firing"]
    kinds = [row.kind for row in alert.events.all()]
    assert kinds == ["repeated", "fired"]


def test_channel__added_while_it_fires__is_told(
    api: APIClient, make_alert: MakeAlert, served: Served, webhook: str
) -> None:
    alert = make_alert(channels=[])
    served(10, failed=4)
    look_again(alert)
    look_again(alert)
    assert [row.kind for row in alert.events.all()] == ["fired"]

    api.patch(f"/api/llm/alerts/{alert.pk}", {"channels": [webhook]}, format="json")
    look_again(alert)
    assert [one["state"] for one in received()] == ["firing"]


def test_silence__nothing_is_sent_until_it_ends(api: APIClient, make_alert: MakeAlert, served: Served) -> None:
    alert = make_alert()
    until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    answer = api.post(f"/api/llm/alerts/{alert.pk}/silence", {"until": until}, format="json")
    assert (answer.status_code, answer.json()["state"]) == (200, "silenced")
    served(10, failed=4)

    look_again(alert)

    assert received() == []
    shown = api.get(f"/api/llm/alerts/{alert.pk}").json()
    assert (shown["state"], shown["found_state"]) == ("silenced", "firing")
    [entry] = api.get(f"/api/llm/alerts/{alert.pk}/events").json()["results"]
    assert (entry["kind"], entry["is_silenced"], entry["deliveries"]) == ("fired", True, [])

    assert api.post(f"/api/llm/alerts/{alert.pk}/silence", {"until": None}, format="json").status_code == 200
    look_again(alert)
    assert [one["state"] for one in received()] == ["firing"]


def test_prompt__deleted__the_alert_says_that_it_is_broken(
    make_alert: MakeAlert, project: Project, api: APIClient
) -> None:
    config = make_config(project)
    alert = make_alert(query={"figure": "error_rate", "filters": {"prompt_config_id": str(config.pk)}})
    assert look_again(alert).state == "no_data"
    assert api.delete(f"/api/llm/prompts/configs/{config.pk}").status_code in (200, 204)

    look_again(alert)
    look_again(alert)

    assert (alert.state, alert.problem) == (
        "broken",
        "The prompt of the figure is not there any more: choose another figure.",
    )
    [message] = received()
    assert message["state"] == "broken"
    assert "The prompt of the figure is not there any more" in message["message"]


def test_key__revoked__broken(make_alert: MakeAlert, project: Project) -> None:
    key = make_key(project)[0]
    alert = make_alert(query={"figure": "total_cost_usd", "filters": {"api_key_id": str(key.pk)}})
    ApiKey.objects.filter(pk=key.pk).update(revoked_at=datetime.now(UTC))

    assert look_again(alert).state == "broken"
    assert "API key" in alert.problem


def test_figure__that_is_not_there_any_more__broken_and_mended_by_a_change(
    api: APIClient, make_alert: MakeAlert, served: Served
) -> None:
    alert = make_alert()
    served(10)
    FigureAlert.objects.filter(pk=alert.pk).update(query={"figure": "of_last_year", "filters": {}})

    assert look_again(alert).state == "broken"
    assert "There is no figure 'of_last_year'" in alert.problem
    assert api.get("/api/llm/alerts").json()["results"][0]["query"]["figure"] == "of_last_year"
    refused = api.patch(f"/api/llm/alerts/{alert.pk}", {"threshold": 0.3}, format="json")
    assert refused.status_code == 200

    changed = api.patch(f"/api/llm/alerts/{alert.pk}", {"query": {"figure": "error_rate"}}, format="json")
    assert changed.status_code == 200
    look_again(alert)
    assert [one["state"] for one in received()] == ["broken", "resolved"]


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (AnalyticsUnavailableError("away"), "The request log did not answer at the latest look."),
        (AnalyticsLimitError("hard"), "The figure takes more time or memory than it may"),
    ],
)
def test_store__does_not_answer__the_state_stays_and_the_page_says_so(
    make_alert: MakeAlert, served: Served, monkeypatch: pytest.MonkeyPatch, error: Exception, problem: str
) -> None:
    alert = make_alert()
    served(10, failed=4)
    look_again(alert)

    def fail(*_: Any) -> Any:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(check, "look_at", fail)
        look_again(alert)
    assert alert.state == "firing"
    assert alert.problem.startswith(problem)
    assert len(received()) == 1


def test_run__store_away__ends_after_two_looks_and_work_is_bounded(
    make_alert: MakeAlert, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        make_alert(name=f"Alert {number}")
    looked: list[str] = []

    def away(alert: FigureAlert, _: datetime) -> Any:
        looked.append(alert.name)
        raise AnalyticsUnavailableError("away")

    with monkeypatch.context() as patched:
        patched.setattr(check, "look_at", away)
        check_alerts()
    assert looked == ["Alert 0", "Alert 1"]

    monkeypatch.setattr(check, "MAX_LOOKS", 1)
    assert check_due_alerts() == 1
    assert check_due_alerts() == 1
    assert check_due_alerts() == 0


def test_alert__changed_during_a_look__the_look_is_dropped(
    api: APIClient, make_alert: MakeAlert, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    alert = make_alert()
    served(10, failed=4)

    def look_while_it_changes(row: FigureAlert, now: datetime) -> Any:
        found = look_at(row, now)
        api.patch(f"/api/llm/alerts/{alert.pk}", {"threshold": 0.9}, format="json")
        return found

    with monkeypatch.context() as patched:
        patched.setattr(check, "look_at", look_while_it_changes)
        patched.setattr(check, "MAX_LOOKS", 1)
        look_again(alert)
    assert alert.state == "no_data"
    assert look_again(alert).state == "ok"
    assert received() == []


@pytest.mark.django_db(transaction=True)
def test_alert__looked_at_by_many_workers_at_once__one_look_and_one_message(
    make_alert: MakeAlert, served: Served
) -> None:
    alert = make_alert()
    served(10, failed=4)

    def run(_: int) -> int:
        try:
            return check_due_alerts()
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        looks = list(pool.map(run, range(8)))

    assert sum(looks) == 1
    assert alert.events.count() == 1


def test_windows__longer_ones_are_looked_at_less_often() -> None:
    assert [distance(minutes).total_seconds() for minutes in (5, 60, 61, 1440, 10080)] == [55, 55, 300, 300, 900]
