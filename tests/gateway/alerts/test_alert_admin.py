"""Operators see alerts, their deliveries and the secret of the webhook, which they can replace, in the admin."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from gateway.alerts.secrets import ensure_secret, secret_of
from gateway.tables.alert import AlertDelivery, AlertSecret, BudgetAlert
from tests.factories.core import make_project

pytestmark = pytest.mark.django_db


def test_alert__is_shown_and_cannot_be_changed(admin_client: Client) -> None:
    project = make_project()
    alert = BudgetAlert.objects.create(
        project=project, month="2026-11", threshold_percent=80, budget_usd=Decimal(10), spent_usd=Decimal(9)
    )
    AlertDelivery.objects.create(alert=alert, channel="webhook", last_error="the receiver answered 500")

    listed = admin_client.get(reverse("admin:gateway_budgetalert_changelist")).content.decode()
    page = reverse("admin:gateway_budgetalert_change", args=[alert.pk])
    shown = admin_client.get(page).content.decode()

    assert "webhook: pending" in listed
    assert "the receiver answered 500" in shown
    assert admin_client.post(page, {"threshold_percent": 1}).status_code == 403
    assert admin_client.get(reverse("admin:gateway_budgetalert_add")).status_code == 403
    assert admin_client.post(reverse("admin:gateway_budgetalert_delete", args=[alert.pk])).status_code == 403


def test_secret__is_shown_to_staff_and_rotated_by_an_action(admin_client: Client, client: Client) -> None:
    project = make_project()
    row = ensure_secret(project.pk)
    before = secret_of(project.pk)
    page = reverse("admin:gateway_alertsecret_change", args=[row.pk])

    assert before in admin_client.get(page).content.decode()
    assert client.get(page).status_code == 302

    chosen = {"action": "rotate", "_selected_action": [row.pk]}
    assert admin_client.post(reverse("admin:gateway_alertsecret_changelist"), chosen).status_code == 302
    assert secret_of(project.pk) != before
    assert AlertSecret.objects.get(pk=row.pk).rotated_at is not None
    assert secret_of(project.pk) in admin_client.get(page).content.decode()
