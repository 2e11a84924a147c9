"""The endpoints of alerts and of their channels: what is refused by which field, and secrets that are never shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from core.models import AuditEntry, Project
from gateway.alerts.recipients import address_of
from gateway.tables.alert import AlertDelivery
from gateway.tables.figure_alert import AlertChannel, FigureAlert
from tests.factories.core import make_project
from tests.gateway.alerts.figures.conftest import ERRORS, MakeAlert
from tests.gateway.alerts.receiver import TOKEN, Receiver
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db

ALERTS, CHANNELS = "/api/llm/alerts", "/api/llm/alert-channels"
SLACK = "https://hooks.slack.com/services/T000/B000/SLACK-SECRET"


@tabled
def test_alert__bad_value__400_that_names_the_field(api: APIClient, given: dict[str, Any], field: str) -> None:
    answer = api.post(ALERTS, {**ERRORS, **given}, format="json")

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert field in json.dumps(error), error
    assert not FigureAlert.objects.exists()


def test_alert__channel_of_another_project__is_refused(api: APIClient) -> None:
    foreign = AlertChannel.objects.create(project=make_project(), name="Foreign", kind="email", emails=["a@x.example"])
    answer = api.post(ALERTS, {**ERRORS, "channels": [str(foreign.pk)]}, format="json")
    assert (answer.status_code, "channels.0" in answer.content.decode()) == (400, True)


def test_alert__made_read_changed_and_deleted(api: APIClient, make_alert: MakeAlert, webhook: str) -> None:
    alert = make_alert(min_requests=5, repeat_minutes=60)
    shown = api.get(f"{ALERTS}/{alert.pk}").json()
    assert shown["channels"] == [{"id": webhook, "name": "On call", "kind": "webhook"}]
    assert (shown["state"], shown["checked_at"], shown["min_requests"]) == ("no_data", None, 5)

    changed = api.patch(f"{ALERTS}/{alert.pk}", {"threshold": 0.3, "channels": []}, format="json").json()
    assert (changed["threshold"], changed["channels"], changed["repeat_minutes"]) == (0.3, [], 60)
    assert api.post(ALERTS, ERRORS, format="json").json()["error"]["code"] == "alert_exists"
    assert api.delete(f"{ALERTS}/{alert.pk}").status_code == 204
    assert api.get(f"{ALERTS}/{alert.pk}").json()["error"]["code"] == "alert_not_found"
    entries = AuditEntry.objects.filter(object_kind="alert").order_by("id")
    assert [entry.action for entry in entries] == ["created", "changed", "deleted"]
    assert entries[1].changes["channels"] == [["On call"], []]


@pytest.mark.parametrize("until", ["yesterday", 5, "2020-01-01T00:00:00Z", "2190-01-01T00:00:00Z"])
def test_silence__wrong_time__400(api: APIClient, make_alert: MakeAlert, until: Any) -> None:
    answer = api.post(f"{ALERTS}/{make_alert().pk}/silence", {"until": until}, format="json")
    assert (answer.status_code, "until" in answer.content.decode()) == (400, True)


def test_channel__its_address_is_in_no_answer_log_error_or_audit_entry(
    api: APIClient, project: Project, caplog: pytest.LogCaptureFixture, settings: Settings
) -> None:
    settings.ALLOW_PRIVATE_UPSTREAMS = True
    answer = api.post(CHANNELS, {"name": "Team", "kind": "slack", "url": SLACK}, format="json")
    shown = answer.json()
    assert (answer.status_code, shown["url"]) == (201, "https://hooks.slack.com/****")
    path = f"{CHANNELS}/{shown['id']}"

    # As it was shown it stands for the stored one.
    kept = api.patch(path, {"name": "The team", "url": shown["url"]}, format="json")
    refused = api.patch(path, {"url": "https://elsewhere.example.com/****"}, format="json")
    wrong = api.patch(path, {"url": "ftp://example.com/OTHER-SECRET"}, format="json")

    row = AlertChannel.objects.get(pk=shown["id"])
    delivery = AlertDelivery(channel="slack", receiver=row, channel_name=row.name)
    assert (row.name, address_of(delivery).url) == ("The team", SLACK)
    assert "SECRET" not in row.encrypted_url
    assert (refused.status_code, wrong.status_code) == (400, 400)
    answers = [answer, kept, refused, wrong, api.get(path), api.get(CHANNELS)]
    entries = [str(entry.changes) for entry in AuditEntry.objects.filter(project_id=project.pk)]
    assert any("set" in entry for entry in entries)
    for text in [*(one.content.decode() for one in answers), *entries, caplog.text]:
        assert "SECRET" not in text


@tabled
def test_channel__bad_value__400_that_names_the_field(
    api: APIClient, settings: Settings, given: dict[str, Any], field: str
) -> None:
    settings.ALLOW_PRIVATE_UPSTREAMS = False
    answer = api.post(CHANNELS, {"name": "Team", **given}, format="json")

    assert answer.status_code == 400
    assert field in json.dumps(answer.json()["error"])
    assert "TOKEN" not in answer.content.decode()
    assert not AlertChannel.objects.exists()


def test_channel__removed__its_alerts_keep_the_others(api: APIClient, make_alert: MakeAlert, webhook: str) -> None:
    alert = make_alert()
    assert api.delete(f"{CHANNELS}/{webhook}").status_code == 204
    assert api.get(f"{ALERTS}/{alert.pk}").json()["channels"] == []
    answer = api.post(f"{ALERTS}/{alert.pk}/test", {}, format="json")
    assert (answer.status_code, "channels" in answer.content.decode()) == (400, True)


def test_test__sends_one_marked_message_and_says_what_became_of_it(
    api: APIClient, make_alert: MakeAlert, webhook: str, mailoutbox: Any
) -> None:
    mail = api.post(CHANNELS, {"name": "Mail", "kind": "email", "emails": ["a@x.example"]}, format="json").json()["id"]
    alert = make_alert(channels=[webhook, mail])
    Receiver.statuses[:] = [500]

    answer = api.post(f"{ALERTS}/{alert.pk}/test", {}, format="json")

    assert answer.status_code == 200
    outcomes = {one["channel"]: (one["state"], one["last_error"]) for one in answer.json()["deliveries"]}
    # Somebody waits for the outcome: a test that failed is not repeated.
    assert outcomes == {"On call": ("failed", "the receiver answered 500"), "Mail": ("delivered", "")}
    ((_, body),) = Receiver.received
    assert json.loads(body)["state"] == "test"
    assert "Nothing is wrong." in json.loads(body)["message"]
    assert mailoutbox[0].subject.startswith("Test: Errors")
    assert TOKEN not in answer.content.decode()
    shown = api.get(f"{ALERTS}/{alert.pk}").json()
    assert shown["found_state"] == "no_data"


def test_problems__of_alerts__fire_and_broken_are_listed(api: APIClient, make_alert: MakeAlert) -> None:
    for name, state in (("Errors", "firing"), ("Old", "broken"), ("Calm", "ok"), ("Hushed", "firing")):
        alert = make_alert(name=name)
        silenced = datetime.now(UTC) + timedelta(hours=1) if name == "Hushed" else None
        FigureAlert.objects.filter(pk=alert.pk).update(
            state=state, problem="The prompt is gone.", state_since=datetime.now(UTC), silenced_until=silenced
        )
    found = {one["kind"]: one["message"] for one in api.get("/api/llm/problems").json()["problems"]}
    assert found["alert_firing"] == "The alert Errors fires."
    assert found["alert_broken"] == "The alert Old cannot be checked: The prompt is gone."
