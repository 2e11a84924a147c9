"""The detail of a request has its attributes: verdicts of guardrails, breaches of a contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from core.models import Project
from tests.analytics.requests.entries import entry
from tests.factories.analytics import store
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

VERDICT = {"guardrail": "pii", "stage": "input", "action": "flagged", "detail": "card"}


@tabled
def test_request__attributes__are_in_its_detail(
    api: APIClient, project: Project, spool: Path, kept: dict[str, str], shown: dict[str, Any]
) -> None:
    given = entry(project, attributes=kept)
    store(spool, given)
    assert api.get(f"/api/llm/requests/{given.record.request_id}").json()["attributes"] == shown


def test_admin__attributes__are_on_the_requests_page(admin_client: Client, project: Project, spool: Path) -> None:
    given = entry(project, attributes={"guardrails": json.dumps([VERDICT])})
    store(spool, given)
    page = admin_client.get(reverse("admin:analytics_requests_detail", args=[project.pk, given.record.request_id]))
    shown = b"".join(page.streaming_content).decode()  # type: ignore[attr-defined]  # the page is streamed
    assert "guardrails" in shown
    assert "flagged" in shown
