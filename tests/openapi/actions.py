"""The operations of the OpenAPI document, each with its method, its path, the right that it requires, and the action of
a ViewSet that serves it.

`operations.txt` has them as they were promised to clients. Read it before it is committed anew, since a line that goes,
or gets another id, path or right, breaks clients:

    .venv/bin/python manage.py shell -v 0 -c "from tests.openapi.actions import store; store()"
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.urls import URLPattern

from core.api.viewsets import ProjectViewSet
from tests.openapi.routes import channels_paths, django_patterns, operations

STORED = Path(__file__).parent / "operations.txt"
# Exporters of OpenTelemetry call these functions, whose bodies and answers are not the management API's.
_EXPORTS = "/api/otlp/"


def lines() -> list[str]:
    patterns = dict(django_patterns())
    return sorted(
        " ".join([one.path, one.method.upper(), one.id, one.right, *_action(one.path, one.method, patterns)])
        for one in operations()
    )


def _action(path: str, method: str, patterns: dict[str, URLPattern]) -> list[str]:
    if path in channels_paths() or path.startswith(_EXPORTS):
        return []
    callback: Any = patterns[path].callback
    view = callback.cls
    assert issubclass(view, ProjectViewSet), f"{path}: {view.__name__} is no ViewSet of a project"
    return [f"{view.__name__}.{callback.actions[method]}"]


def store() -> None:
    STORED.write_text("\n".join(lines()) + "\n")
