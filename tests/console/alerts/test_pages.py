from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from core.models import Project
from core.roles import Role
from gateway.alerts import channels
from gateway.tables.figure_alert import AlertChannel, FigureAlert
from tests.console.conftest import sent, shown, signed_in, text_of
from tests.factories.dashboards import make_dashboard
from tests.gateway.alerts.receiver import Receiver, receiver_at
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

ALERTS, NEW, CHANNELS = "/admin/alerts/", "/admin/alerts/new/", "/admin/alerts/channels/"
FIELDS = {
    "name": "Failures",
    "figure": "error_rate",
    "condition": "above",
    "threshold": "5",
    "window_minutes": "15",
    "min_requests": "20",
}


@pytest.fixture
def slack(project: Project, settings: Settings) -> Iterator[AlertChannel]:
    settings.ALLOW_PRIVATE_UPSTREAMS = True
    Receiver.received.clear()
    Receiver.statuses.clear()
    with receiver_at() as address:
        yield channels.CHANNELS.create(project.pk, {"name": "Team", "kind": "slack", "url": address}, actor="test")


def alert_of(project: Project) -> FigureAlert:
    return FigureAlert.objects.get(project=project)


def page_of(row: FigureAlert) -> str:
    return f"{ALERTS}{row.pk}/"


def test_form__filled_in_by_a_link__saved_by_an_editor_with_percent_as_a_share(
    editor: Client, project: Project, slack: AlertChannel
) -> None:
    filters = json.dumps({"model": "gpt-4o", "user_id": "ann", "not_provider": ["openai", "anthropic"], "odd": 5})
    text = shown(editor, project, NEW, figure="error_rate", title="Failures of the shop", filters=filters)
    for value in ("Failures of the shop", "gpt-4o", "user_id=ann", "not_provider=openai\nnot_provider=anthropic"):
        assert value in text

    lines = "user_id=ann\n\nnot_provider=openai\nnot_provider=anthropic\n"
    given = {
        **FIELDS,
        "model": "gpt-4o",
        "provider": "OpenAI",
        "filters": lines,
        "channels": str(slack.pk),
        "repeat_minutes": "60",
    }
    assert sent(editor, project, NEW, **given).status_code == 302

    row = alert_of(project)
    several = {"not_provider": ["openai", "anthropic"]}
    assert row.query["filters"] == {"model": "gpt-4o", "provider": "openai", "user_id": "ann", **several}
    assert (row.threshold, row.window_minutes, row.min_requests, row.repeat_minutes) == (0.05, 15, 20, 60)
    assert list(row.channels.all()) == [slack]
    page = shown(editor, project, page_of(row))
    assert "fires above 5 % over 15 minutes" in page
    assert "It is looked at within half a minute." in page
    assert 'value="5.0"' in page
    listed = shown(editor, project, ALERTS)
    assert "not looked at yet" in listed
    assert "not provider OpenAI, not provider Anthropic" in listed


@pytest.mark.parametrize("filters", ["{", "5", '{"model": {"a": "b"}}'])
def test_form__address_with_odd_filters__is_not_filled_in_by_them(
    editor: Client, project: Project, filters: str
) -> None:
    assert "What to watch" in shown(editor, project, NEW, figure="error_rate", filters=filters)


@tabled
def test_form__wrong_value__says_so_in_place_and_saves_nothing(
    editor: Client, project: Project, given: dict[str, str], problem: str
) -> None:
    answer = sent(editor, project, NEW, **{**FIELDS, **given})

    assert problem in text_of(answer)
    assert not FigureAlert.objects.exists()


def test_alert__changed_silenced_tried_and_deleted(editor: Client, project: Project, slack: AlertChannel) -> None:
    sent(editor, project, NEW, **FIELDS, channels=str(slack.pk))
    row = alert_of(project)
    page = page_of(row)

    assert sent(editor, project, page, action="test").status_code == 302
    assert "Team took the test message." in shown(editor, project, page)
    ((_, body),) = Receiver.received
    assert "This is a test of the alert on Share of requests that failed" in json.loads(body)["text"]

    sent(editor, project, page, action="silence", hours="8")
    row.refresh_from_db()
    assert row.silenced_until is not None
    assert row.silenced_until > datetime.now(UTC) + timedelta(hours=7)
    assert "silenced" in shown(editor, project, page)
    sent(editor, project, page, action="unsilence")

    # What was entered comes back, although 0.07 times 100 is not 7 in binary.
    sent(editor, project, page, **{**FIELDS, "threshold": "7"}, action="save", channels=str(slack.pk))
    changed = alert_of(project)
    assert (changed.threshold, changed.silenced_until) == (0.07, None)
    assert 'value="7.0"' in shown(editor, project, page)

    sent(editor, project, page, action="delete")
    assert not FigureAlert.objects.exists()


@tabled
def test_alert__what_cannot_be_done__is_refused_with_a_sentence(
    editor: Client, project: Project, action: str, hours: str, said: str
) -> None:
    sent(editor, project, NEW, **FIELDS)
    page = page_of(alert_of(project))
    assert sent(editor, project, page, action=action, hours=hours).status_code == 302
    assert said in shown(editor, project, page)
    assert alert_of(project).silenced_until is None


def test_alert__test_that_is_refused__says_why(editor: Client, project: Project, slack: AlertChannel) -> None:
    sent(editor, project, NEW, **FIELDS, channels=str(slack.pk))
    Receiver.statuses[:] = [404]
    sent(editor, project, page_of(alert_of(project)), action="test")
    assert "Team did not take the test message: the receiver answered 404." in shown(editor, project, ALERTS)


def test_reader__sees_alerts_and_changes_nothing(editor: Client, project: Project) -> None:
    sent(editor, project, NEW, **FIELDS)
    row = alert_of(project)
    problem = "The prompt of the figure is not there any more."
    FigureAlert.objects.update(state="broken", problem=problem, checked_at=datetime.now(UTC))
    reading = signed_in(project, Role.READER_WITHOUT_CONTENT)

    text = shown(reading, project, ALERTS)
    page = shown(reading, project, page_of(row))

    assert "Failures" in text
    assert "broken" in text
    assert problem in page
    assert "Save alert" not in page
    assert reading.get(NEW, {"project": str(project.pk)}).status_code == 403
    assert sent(reading, project, page_of(row), action="delete").status_code == 403
    assert FigureAlert.objects.exists()


def test_figure__not_there_any_more__its_page_says_so_and_the_list_goes_on(editor: Client, project: Project) -> None:
    sent(editor, project, NEW, **FIELDS)
    FigureAlert.objects.update(query={"figure": "of_last_year", "filters": {}})
    assert "of_last_year" in shown(editor, project, ALERTS)
    assert "There is no figure 'of_last_year'" in shown(editor, project, page_of(alert_of(project)))


def test_channels__administrator__secret_is_never_shown_again(
    administrator: Client, editor: Client, project: Project
) -> None:
    given = {"name": "Team", "kind": "slack", "url": "https://hooks.slack.com/services/T0/B0/SLACK-SECRET"}
    assert sent(administrator, project, CHANNELS, **given).status_code == 302
    row = AlertChannel.objects.get(project=project)
    text = shown(administrator, project, CHANNELS, channel=row.pk)
    assert "https://hooks.slack.com/****" in text
    assert "SLACK-SECRET" not in text

    token = row.encrypted_url
    address = f"{CHANNELS}?project={project.pk}&channel={row.pk}"
    changed = {"name": "The team", "url": "https://hooks.slack.com/****", "receives_project_alerts": "on"}
    assert administrator.post(address, changed).status_code == 302
    row.refresh_from_db()
    assert (row.name, row.encrypted_url, row.receives_project_alerts) == ("The team", token, True)
    assert editor.get(CHANNELS, {"project": str(project.pk)}).status_code == 403
    assert administrator.post(address, {"action": "remove"}).status_code == 302
    assert not AlertChannel.objects.exists()


@tabled
def test_channels__wrong_address__says_so_in_place(
    administrator: Client, project: Project, settings: Settings, given: dict[str, Any], problem: str
) -> None:
    settings.ALLOW_PRIVATE_UPSTREAMS = False
    assert problem in text_of(sent(administrator, project, CHANNELS, name="Team", **given))
    assert not AlertChannel.objects.exists()


def links_of(text: str) -> dict[str, str]:
    found = re.findall(r'href="([^"]+)">Alert on this<span class="sr">: ([^<]*)</span>', text)
    return {name: address for address, name in found}


def test_links__of_a_chart_and_of_a_figure__open_the_form_filled_in(editor: Client, project: Project) -> None:
    charts: list[dict[str, Any]] = [
        {
            "title": "Slow half",
            "kind": "number",
            "figures": ["p95_latency_ms"],
            "filters": {"provider": "openai", "user_id": "ann"},
        },
        {"title": "Of last year", "kind": "number", "figures": ["of_last_year"]},
    ]
    dashboard = make_dashboard(project, charts=charts)

    links = links_of(shown(editor, project, f"/admin/dashboards/{dashboard.pk}/"))
    form = text_of(editor.get(links["Slow half"]))

    assert set(links) == {"Slow half"}
    assert '<option value="p95_latency_ms" selected' in form
    for value in ('value="Slow half"', 'value="OpenAI"', "user_id=ann"):
        assert value in form
    assert set(links_of(shown(editor, project, "/admin/errors/"))) == {"Failed requests", "Share of all requests"}
    log = shown(editor, project, "/admin/analytics/requests/", model=["gpt-4o", "gpt-5"], not_provider="openai")
    form = text_of(editor.get(re.findall(r'href="([^"]+)">Alert on these<', log)[0]))
    assert "model=gpt-4o\nmodel=gpt-5\nnot_provider=openai" in form
    reading = signed_in(project, Role.READER)
    assert links_of(shown(reading, project, "/admin/errors/")) == {}
