from __future__ import annotations

from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from console.audit import page as page
from core.models import Project
from tests.factories.core import client_of

pytestmark = pytest.mark.django_db

PATH = "/admin/audit/"


def _shown(client: Client, project: Project, **query: Any) -> str:
    # A range ends with the second that has passed.
    values = {"project": str(project.pk), "start": "2026-01-01", "end": "2199-01-01", **query}
    answer = client.get(PATH, values)
    assert answer.status_code == 200
    return unescape(b"".join(answer.streaming_content).decode())  # type: ignore[attr-defined]


def test_list__change_by_a_key__who_what_before_and_after(administrator: Client, project: Project) -> None:
    api = client_of(project, name="<i>robot</i>")
    api.put("/api/llm/settings", {"retry_max_attempts": 3}, format="json")
    api.put("/api/llm/settings", {"retry_max_attempts": 5}, format="json")

    text = _shown(administrator, project)

    assert "<dt>retry max attempts</dt><dd>3 → 5</dd>" in text
    assert "API: putSettings" in text
    answer = administrator.get(PATH, {"project": str(project.pk), "start": "2026-01-01", "end": "2199-01-01"})
    assert b"&lt;i&gt;robot" in b"".join(answer.streaming_content)  # type: ignore[attr-defined]


def test_filters__each__narrow_the_list(administrator: Client, project: Project) -> None:
    api = client_of(project, name="robot")
    api.put("/api/llm/settings", {"retry_max_attempts": 3}, format="json")
    api.post("/api/llm/keys", {"name": "shop-key", "scopes": ["gateway"]}, format="json")

    assert "shop-key" in _shown(administrator, project, object_kind="API key")
    assert "retry max attempts" not in _shown(administrator, project, object_kind="API key")
    assert "Nobody changed anything that fits" in _shown(administrator, project, actor="nobody-known")


def test_list__many__older_by_cursor(administrator: Client, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "PAGE_ROWS", 2)
    api = client_of(project)
    for attempts in (3, 4, 5):
        api.put("/api/llm/settings", {"retry_max_attempts": attempts}, format="json")

    text = _shown(administrator, project)

    assert "4 → 5" in text
    assert "cursor=" in text


def test_list__change_of_no_project__superusers_alone_see_it(administrator: Client, project: Project) -> None:
    call_command("rotate_encryption_keys", accept_loss=True)
    superuser = Client()
    superuser.force_login(User.objects.create_superuser("root"))

    assert "<dt>accepted loss</dt>" in _shown(superuser, project, object_kind="encryption")
    assert "accepted loss" not in _shown(administrator, project)
