"""Rows of feedback lead to the session that they are of."""

from __future__ import annotations

import pytest
from django.test import Client

from analytics.scores.services import record_feedback
from core.models import Project

pytestmark = pytest.mark.django_db


def test_feedback__session__linked(admin_client: Client, project: Project) -> None:
    record_feedback(project_id=project.pk, session_id="a/b c", score=4, text="", actor="test")

    shown = admin_client.get("/admin/analytics/feedback/").content.decode()

    assert f'href="/admin/analytics/sessions/{project.pk}/a/b%20c"' in shown
