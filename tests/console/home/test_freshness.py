"""What is said of figures while requests wait to reach the log: up to when they are complete, and no emptiness."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from analytics.spool.writer import SpoolWriter
from core.models import Project
from tests.console.conftest import shown
from tests.factories.analytics import make_entry

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

PAGES = {
    "/admin/": "Nothing failed in this range.",
    "/admin/errors/": "No request failed in this range.",
    "/admin/analytics/requests/": "No requests in this range.",
    "/admin/analytics/sessions/": "No request in this range named a session",
    "/admin/usage/": "No request in this range.",
}


@pytest.fixture
def waiting(project: Project, tmp_path: Path, settings: Settings) -> str:
    """A request that failed a minute ago and waits in the spool; returns the clock of its end."""
    settings.SPOOL_DIR = tmp_path / "waiting"
    writer = SpoolWriter(settings.SPOOL_DIR)
    ended = time.time() - 60
    writer.append(make_entry(project_id=str(project.pk), ts=int(ended * 1_000_000), outcome="error", latency_ms=0))
    writer.close()
    return time.strftime("%H:%M", time.gmtime(ended)) + ":"


@pytest.mark.parametrize("path", PAGES)
def test_page_of_now__rows_wait__says_up_to_when_and_takes_no_emptiness_for_a_fact(
    administrator: Client, project: Project, waiting: str, path: str
) -> None:
    text = shown(administrator, project, path)

    assert f"Complete up to {waiting}" in text
    assert f"Nothing up to {waiting}" in text
    assert PAGES[path] not in text


@pytest.mark.parametrize("path", PAGES)
def test_page_of_yesterday__rows_wait__is_complete(
    administrator: Client, project: Project, waiting: str, path: str
) -> None:
    end = timezone.now() - timedelta(days=1)
    bounds = {"start": (end - timedelta(hours=1)).isoformat(), "end": end.isoformat()}

    text = shown(administrator, project, path, range="custom", **bounds)

    assert "Complete up to" not in text
    assert PAGES[path] in text
