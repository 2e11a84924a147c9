"""Alerts for operators: the one host of several that sends them, and their rows in the admin."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from core.processes.monitoring import SECRETS, Alarm
from gateway.alerts.operators import OperatorMessage, _save
from gateway.tables.alert import AlertSecret, OperatorAlert
from tests.factories.core import make_project

AWAY = Alarm("store_away", "The redis store does not answer.", "redis", is_shared=True)
DISK = Alarm("disk_low", "1 MiB are left for VAR_DIR.")

# Threads save the alerts, each on a database connection of its own.
pytestmark = pytest.mark.django_db(transaction=True)


def test_alert_that_all_hosts_see__first_host_tells_and_one_tells_that_it_is_over() -> None:
    assert [_save(OperatorMessage(AWAY, False, host)) for host in ("a", "b", "c")] == [True, False, False]
    assert [_save(OperatorMessage(AWAY, True, host)) for host in ("b", "a", "c")] == [True, False, False]

    row = OperatorAlert.objects.get()
    assert (row.kind, row.subject, row.host) == ("store_away", "redis", "")
    assert row.over_at is not None
    # The alarm may be raised again.
    assert _save(OperatorMessage(AWAY, False, "c"))


def test_alert_of_a_host__each_host_tells_its_own_and_a_restarted_one_not_again() -> None:
    assert _save(OperatorMessage(DISK, False, "a"))
    assert _save(OperatorMessage(DISK, False, "b"))
    assert not _save(OperatorMessage(DISK, False, "a"))


def test_message__body_and_letter__say_what_and_where() -> None:
    message = OperatorMessage(DISK, True, "a")

    body = json.loads(message.body())
    subject, text = message.email()

    assert body["type"] == "operator.alert"
    assert (body["state"], body["kind"], body["host"], body["message"]) == ("over", "disk_low", "a", DISK.text)
    assert subject == "Over: disk low on a"
    assert DISK.text in text


def test_admin__operator_alerts__superusers_alone_see_them(admin_client: Client, client: Client) -> None:
    _save(OperatorMessage(DISK, False, "host-a"))
    staff = User.objects.create_user("staff", is_staff=True)
    client.force_login(staff)
    page = reverse("admin:gateway_operatoralert_changelist")

    listed = admin_client.get(page).content.decode()

    assert "host-a" in listed
    assert DISK.text in listed
    assert client.get(page).status_code == 403
    assert admin_client.get(reverse("admin:gateway_operatoralert_add")).status_code == 403


def test_secrets__one_that_no_key_reads__is_counted_and_an_alarm() -> None:
    AlertSecret.objects.create(project=make_project(), token="of another key")

    found = SECRETS.ask()

    assert found["unreadable"]["alertsecret"] == 1
    (alarm,) = SECRETS.alarms(found)
    assert alarm.kind == "credentials_unreadable"
    assert "1 of alertsecret" in alarm.text
