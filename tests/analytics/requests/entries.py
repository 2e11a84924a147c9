"""Requests with prompts and completions."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from analytics.request_log.record import SpoolEntry
from core.models import Project
from tests.factories.analytics import make_entry

NOW = datetime.now(UTC).replace(microsecond=0)


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
