"""A project with past requests, a provider that answers as scripted, and experiments that run within the test."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from rest_framework.test import APIClient

from core.models import Project
from gateway.experiments import run
from integrations.access.credentials import store_secret
from integrations.models import ProviderIntegration
from tests.factories.analytics import make_entry, store
from tests.factories.core import client_of, make_project
from tests.fakes.scripted import Script, ScriptedServer, Step, answer

PATH = "/api/llm/experiments"
MODEL = "openai/gpt-4o"


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@dataclass
class Scene:
    """A project with the requests that its provider receives."""

    project: Project
    api: APIClient
    script: Script
    spool: Path

    def past(self, text: str = "Where is my parcel?", *, fields: dict[str, Any] | None = None, **values: Any) -> str:
        """Stores a request that a client made a minute ago, since ranges of pages end at whole seconds; returns its
        id."""
        values.setdefault("ts", time.time_ns() // 1000 - 60_000_000)
        body = {"model": MODEL, "messages": [{"role": "user", "content": text}], **(fields or {})}
        entry = make_entry(json.dumps(body).encode(), b"{}", project_id=str(self.project.pk), **values)
        store(self.spool, entry)
        return str(entry.record.request_id)

    def create(self, *candidates: dict[str, Any], status: int = 201, **fields: Any) -> dict[str, Any]:
        chosen = list(candidates) or [{"temperature": 0}, {"temperature": 1}]
        answered = self.api.post(PATH, {"candidates": chosen, **fields}, format="json")
        assert answered.status_code == status, answered.content
        found: dict[str, Any] = answered.json()
        return found

    def experiment(self, experiment_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.api.get(f"{PATH}/{experiment_id}").json()
        return found

    def items(self, experiment_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.api.get(f"{PATH}/{experiment_id}/items?limit=1000").json()["results"]
        return found

    def sent(self) -> list[dict[str, Any]]:
        return [json.loads(request.body) for request in self.script.received]

    @property
    def project_id(self) -> UUID:
        return self.project.pk


def run_all() -> None:
    while run.run_due_experiment():
        pass


@pytest.fixture
def scene(
    request: pytest.FixtureRequest, transactional_db: None, clickhouse: None, upstream: ScriptedServer, tmp_path: Path
) -> Scene:
    project = make_project()
    name = f"experiment-{project.pk}"
    steps: list[Step] = getattr(request, "param", [answer("Tomorrow.")])
    script = upstream.play(name, *steps)
    row = ProviderIntegration(project=project, provider="openai", base_url=upstream.base_url(name), enabled=True)
    store_secret(row, "sk-test")
    row.save()
    return Scene(project, client_of(project), script, tmp_path / "spool")
