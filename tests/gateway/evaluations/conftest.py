"""A project with answered requests in its log, and a provider that judges as scripted."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from core.models import Project
from integrations.access.credentials import store_secret
from integrations.models import ProviderIntegration
from tests.factories.analytics import make_entry, store
from tests.factories.core import client_of, make_project
from tests.fakes.scripted import Script, ScriptedServer, Step, completion, status

EVALUATORS = "/api/llm/evaluators"


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@dataclass
class Scene:
    """A project with the requests that its judge receives."""

    project: Project
    api: APIClient
    script: Script
    spool: Path

    def answered(self, text: str = "At seven.", asked: str = "When does it leave?", **fields: Any) -> str:
        """Stores a request with its answer; returns its id."""
        body = {"model": "openai/gpt-4o", "messages": [{"role": "user", "content": asked}], **fields}
        entry = make_entry(
            json.dumps(body).encode(),
            json.dumps(completion(text)).encode(),
            project_id=str(self.project.pk),
            ts=time.time_ns() // 1000 - 60_000_000,
        )
        store(self.spool, entry)
        return str(entry.record.request_id)

    def evaluator(self, kind: str, **definition: Any) -> str:
        made = self.api.post(EVALUATORS, {"name": kind, "kind": kind, "definition": definition}, format="json")
        assert made.status_code == 201, made.content
        return str(made.json()["id"])

    def dry_run(self, evaluator_id: str, *request_ids: str, expected_status: int = 200, **body: Any) -> dict[str, Any]:
        path = f"{EVALUATORS}/{evaluator_id}/dry-run"
        answered = self.api.post(path, {"request_ids": request_ids, **body}, format="json")
        assert answered.status_code == expected_status, answered.content
        found: dict[str, Any] = answered.json()
        return found


@pytest.fixture
def scene(
    request: pytest.FixtureRequest, transactional_db: None, clickhouse: None, upstream: ScriptedServer, tmp_path: Path
) -> Scene:
    return make_scene(upstream, getattr(request, "param", [status(500)]), tmp_path / "spool")


def make_scene(upstream: ScriptedServer, steps: Sequence[Step], spool: Path) -> Scene:
    project = make_project()
    name = f"judge-{project.pk}"
    script = upstream.play(name, *steps)
    row = ProviderIntegration(project=project, provider="openai", base_url=upstream.base_url(name), enabled=True)
    store_secret(row, "sk-test")
    row.save()
    return Scene(project, client_of(project), script, spool)
