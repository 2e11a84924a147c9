"""Pages with their entities; `tests.console.conftest` has their texts."""

from __future__ import annotations

from typing import Any

from django.test import Client

from core.models import Project


def text_of(answer: Any) -> str:
    assert answer.status_code == 200, answer
    return b"".join(answer.streaming_content).decode() if answer.streaming else answer.content.decode()


def shown(client: Client, path: str, project: Project, **query: Any) -> str:
    return text_of(client.get(path, {"project": str(project.pk), **query}))
