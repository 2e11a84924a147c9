"""The helpers that tests of pages share."""

from __future__ import annotations

from typing import Any

from django.test import Client

from core.models import Project


def shown(client: Client, path: str, project: Project, **query: Any) -> str:
    """Returns the text of a page with all of its panels."""
    answer = client.get(path, {"project": str(project.pk), **query})
    assert answer.status_code == 200, answer
    return b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
