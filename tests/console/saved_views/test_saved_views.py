from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from analytics.models import SavedView
from core.models import Project
from core.roles import Role
from tests.console.pages import shown
from tests.factories.core import make_staff

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

PATH = "/admin/analytics/sessions/"


def test_sessions__list_saved_as_a_view__offered_on_their_page_alone(client: Client, project: Project) -> None:
    client.force_login(make_staff(Role.READER, project, name="ann"))
    address = f"{PATH}?project={project.pk}&feedback=bad"

    saved = client.post(address, {"action": "save_view", "name": "unhappy", "query": "feedback=bad"})

    assert (saved.status_code, saved.headers["Location"]) == (302, address)
    assert (SavedView.objects.get().page, SavedView.objects.get().owner) == ("sessions", "user:ann")
    assert f"{PATH}?project={project.pk}&amp;feedback=bad" in shown(client, PATH, project)
    requests: Any = client.get("/admin/analytics/requests/", {"project": str(project.pk)})
    assert "unhappy" not in b"".join(requests.streaming_content).decode()
