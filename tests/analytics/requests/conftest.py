from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from analytics.contracts import SpoolEntry
from core.models import Project
from tests.factories.analytics import make_entry
from tests.factories.core import client_of, make_project

NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def api(project: Project) -> APIClient:
    return client_of(project)


def chat(prompt: str, completion: str) -> dict[str, bytes]:
    """Returns the bodies of a request and its answer as they go over the wire, with escapes for all but ASCII."""
    return {
        "request": json.dumps({"messages": [{"role": "user", "content": prompt}]}).encode(),
        "response": json.dumps({"choices": [{"message": {"role": "assistant", "content": completion}}]}).encode(),
    }


def entry(
    project: Project, prompt: str = "a question", completion: str = "an answer", minutes_ago: float = 0.0, **values: Any
) -> SpoolEntry:
    ts = int((NOW - timedelta(minutes=minutes_ago)).timestamp() * 1_000_000)
    return make_entry(**chat(prompt, completion), project_id=str(project.pk), ts=ts, **values)
