from __future__ import annotations

from typing import Any

from django.test import Client

from core.models import Project
from tests.console.pages import text_of


def shown(client: Client, path: str, project: Project, **query: Any) -> str:
    return text_of(client.get(path, {"project": str(project.pk), "range": "24h", **query}))
