"""The delivery of alerts: the message, the permitted receivers, and the retries after a failure."""

from __future__ import annotations

import json
import smtplib
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from core.encryption.fernet import encrypt
from gateway.alerts import delivery, mail
from gateway.alerts.delivery import MAX_ATTEMPTS, deliver, due_deliveries, pause_after
from gateway.alerts.secrets import rotate_secret, secret_of
from gateway.models import GatewaySettings
from gateway.tables.alert import AlertDelivery, AlertSecret, BudgetAlert
from gateway.tables.figure_alert import AlertChannel
from tests.factories.core import make_project
from tests.factories.settings import make_settings
from tests.gateway.alerts.receiver import Receiver, verified
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db


def make(channel: str, **given: Any) -> AlertDelivery:
    project = make_project()
    make_settings(project, **given)
    alert = BudgetAlert.objects.create(
        project=project, month="2026-11", threshold_percent=80, budget_usd=Decimal(10), spent_usd=Decimal("8.5")
    )
    return AlertDelivery.objects.create(alert=alert, channel=channel)


def after(row: AlertDelivery) -> AlertDelivery:
    row.refresh_from_db()
    return row


def make_due(row: AlertDelivery) -> None:
    AlertDelivery.objects.filter(pk=row.pk).update(next_attempt_at=timezone.now() - timedelta(seconds=1))


def test_webhook__is_signed_and_says_what_happened(receiver: str) -> None:
    row = make("webhook", alert_webhook_url=receiver)

    deliver(row.pk)

    ((headers, body),) = Receiver.received
    project = row.about.project
    assert json.loads(body) == {
        "type": "budget.alert",
        "id": f"{project.pk}/2026-11/80",
        "project_id": str(project.pk),
        "project_name": project.name,
        "month": "2026-11",
        "threshold_percent": 80,
        "budget_usd": 10.0,
        "spent_usd": 8.5,
        "created_at": row.about.created_at.isoformat().replace("+00:00", "Z"),
    }
    assert headers["content-type"] == "application/json"
    secret = secret_of(project.pk)
    assert verified(headers, body, secret)
    assert not verified(headers, body + b" ", secret)
    found = after(row)
    assert (found.state, found.attempts, found.last_error) == ("delivered", 1, "")
    assert found.delivered_at is not None


def test_delivered__is_not_sent_again(receiver: str) -> None:
    row = make("webhook", alert_webhook_url=receiver)
    deliver(row.pk)
    make_due(row)
    deliver(row.pk)
    assert len(Receiver.received) == 1
    assert due_deliveries() == []


def test_failure__is_tried_again_later_with_growing_pauses(receiver: str, caplog: pytest.LogCaptureFixture) -> None:
    row = make("webhook", alert_webhook_url=receiver)
    Receiver.statuses[:] = [500, 302]

    for attempt in (1, 2):
        began = timezone.now()
        deliver(row.pk)
        found = after(row)
        assert (found.state, found.attempts) == ("pending", attempt)
        due = found.next_attempt_at
        assert began + pause_after(attempt) <= due <= timezone.now() + pause_after(attempt)
        assert due_deliveries(due - timedelta(microseconds=1)) == []
        assert due_deliveries(due) == [row.pk]
        deliver(row.pk)  # No delivery is due yet.
        assert after(row).attempts == attempt
        make_due(row)
    assert after(row).last_error == "the receiver answered 302"
    deliver(row.pk)

    assert (after(row).state, len(Receiver.received)) == ("delivered", 3)
    ids = {json.loads(body)["id"] for _, body in Receiver.received}
    assert len(ids) == 1
    assert BudgetAlert.objects.filter(project=row.about.project).count() == 1
    assert "SECRET-IN-URL" not in caplog.text
    assert secret_of(row.about.project_id) not in caplog.text


def test_failure__at_the_last_attempt__is_given_up(receiver: str) -> None:
    row = make("webhook", alert_webhook_url=receiver)
    AlertDelivery.objects.filter(pk=row.pk).update(attempts=MAX_ATTEMPTS - 1)
    Receiver.statuses[:] = [503]
    deliver(row.pk)
    assert (after(row).state, after(row).attempts) == ("failed", MAX_ATTEMPTS)


def test_pauses__double_up_to_an_hour() -> None:
    assert [pause_after(attempts).total_seconds() for attempts in (1, 2, 3, 8, 15)] == [30, 60, 120, 3600, 3600]


@tabled
def test_private_address__is_refused_for_good(receiver: str, settings: Any, url: str) -> None:
    settings.ALLOW_PRIVATE_UPSTREAMS = False
    row = make("webhook", alert_webhook_url=url.format(port=receiver.split(":")[2].split("/")[0]))
    deliver(row.pk)
    assert Receiver.received == []
    assert (after(row).state, after(row).last_error) == ("failed", "the address is on a private network")


def test_nobody_listens__is_tried_again(settings: Any) -> None:
    settings.ALLOW_PRIVATE_UPSTREAMS = True
    row = make("webhook", alert_webhook_url="http://127.0.0.1:1/")
    deliver(row.pk)
    assert (after(row).state, after(row).last_error) == ("pending", "ClientConnectorError")


@pytest.mark.parametrize("channel", ["webhook", "email"])
def test_address_taken_away__ends_it(channel: str) -> None:
    row = make(channel)
    deliver(row.pk)
    assert (after(row).state, after(row).last_error) == ("failed", "the address is no longer set")


def test_worker_that_died__leaves_it_to_the_next(receiver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = make("webhook", alert_webhook_url=receiver)
    with monkeypatch.context() as patched:
        patched.setattr(delivery, "_send", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            deliver(row.pk)
    deliver(row.pk)
    assert Receiver.received == []
    make_due(row)
    deliver(row.pk)
    assert after(row).state == "delivered"


def test_mail__goes_to_all_addresses(mailoutbox: Any) -> None:
    row = make("email", alert_emails=["a@x.example", "b@x.example"])
    type(row.about.project).objects.filter(pk=row.about.project_id).update(name="Team\nBcc: all@x.example")
    deliver(row.pk)
    (letter,) = mailoutbox
    assert letter.to == ["a@x.example", "b@x.example"]
    assert letter.subject == "Team Bcc: all@x.example: 80 % of the budget of 2026-11 is used"
    assert "8.50 USD of its budget of 10.00 USD" in letter.body
    assert after(row).state == "delivered"


def test_mail_server__away__is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> int:
        raise smtplib.SMTPServerDisconnected("secret words")

    monkeypatch.setattr(mail, "send_mail", refuse)
    row = make("email", alert_emails=["a@x.example"])
    deliver(row.pk)
    assert (after(row).state, after(row).last_error) == ("pending", "SMTPServerDisconnected")


def test_mail__without_a_server__fails_with_the_settings_name(settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST = ""
    row = make("email", alert_emails=["a@x.example"])
    deliver(row.pk)
    assert (after(row).state, after(row).last_error) == ("failed", "no mail server is configured (EMAIL_HOST)")


def test_secret__is_made_with_the_address_encrypted_and_kept() -> None:
    row = make("webhook", alert_webhook_url="https://x.example/")
    stored = AlertSecret.objects.get(project=row.about.project)
    secret = secret_of(row.about.project_id)
    assert secret.startswith("whsec_")
    assert secret not in stored.token
    GatewaySettings.objects.get(project=row.about.project).save()
    assert secret_of(row.about.project_id) == secret


def test_secret__rotated__signs_from_then_on(receiver: str) -> None:
    row = make("webhook", alert_webhook_url=receiver)
    old = secret_of(row.about.project_id)
    rotate_secret(AlertSecret.objects.get(project=row.about.project), actor="user:ann")
    deliver(row.pk)
    ((headers, body),) = Receiver.received
    assert verified(headers, body, secret_of(row.about.project_id))
    assert not verified(headers, body, old)


def test_secret__that_cannot_be_read__is_reported_and_retried(receiver: str) -> None:
    row = make("webhook", alert_webhook_url=receiver)
    AlertSecret.objects.filter(project=row.about.project).update(token="damaged")
    deliver(row.pk)
    assert after(row).state == "pending"
    assert "rotate it" in after(row).last_error


def by_channel(kind: str, url: str = "", **given: Any) -> AlertDelivery:
    row = make(kind)
    channel = AlertChannel.objects.create(
        project=row.about.project, name="On call", kind=kind, encrypted_url=encrypt(url) if url else "", **given
    )
    AlertDelivery.objects.filter(pk=row.pk).update(receiver=channel, channel_name=channel.name)
    return after(row)


def test_slack__gets_its_json_with_escapes_and_no_signature(receiver: str) -> None:
    row = by_channel("slack", receiver)
    type(row.about.project).objects.filter(pk=row.about.project_id).update(name="R&D <!channel>")

    deliver(row.pk)

    ((headers, body),) = Receiver.received
    content = json.loads(body)
    assert list(content) == ["text"]
    title, line = content["text"].split("\n", 1)
    assert title == "*R&amp;D &lt;!channel&gt;: 80 % of the budget of 2026-11 is used*"
    assert "8.50 USD of its budget of 10.00 USD" in line
    assert headers["content-type"] == "application/json"
    assert "x-svc-signature" not in headers
    assert after(row).state == "delivered"


def test_channel__webhook__is_signed_and_its_token_is_in_no_error_or_log(
    receiver: str, caplog: pytest.LogCaptureFixture
) -> None:
    row = by_channel("webhook", receiver)
    Receiver.statuses[:] = [404]
    deliver(row.pk)
    assert after(row).last_error == "the receiver answered 404"
    make_due(row)
    deliver(row.pk)

    headers, body = Receiver.received[1]
    assert verified(headers, body, secret_of(row.about.project_id))
    assert "SECRET-IN-URL" not in caplog.text
    assert str(after(row)) == "On call: delivered"


def test_channel__removed__ends_the_delivery_and_leaves_its_name() -> None:
    row = by_channel("email", emails=["a@x.example"])
    AlertChannel.objects.all().delete()
    deliver(row.pk)
    assert (after(row).state, after(row).last_error) == ("failed", "the channel was removed")
    assert after(row).channel_name == "On call"


def test_channel__whose_address_cannot_be_read__is_reported_and_retried(receiver: str) -> None:
    row = by_channel("slack", receiver)
    AlertChannel.objects.update(encrypted_url="damaged")
    deliver(row.pk)
    assert Receiver.received == []
    assert (after(row).state, after(row).last_error) == (
        "pending",
        "the address of the channel cannot be decrypted; enter it again",
    )


def test_channel__corrected_meanwhile__the_next_try_goes_there(mailoutbox: Any) -> None:
    row = by_channel("email", emails=["old@x.example"])
    AlertChannel.objects.update(emails=["new@x.example"])
    deliver(row.pk)
    assert mailoutbox[0].to == ["new@x.example"]
