"""A project with past requests, a provider that answers as scripted, and experiments that run within the test."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from rest_framework.test import APIClient

from analytics.datasets.items import read_item
from analytics.datasets.services import add_items
from analytics.models import Dataset
from core.models import Project
from gateway.experiments import run, slices
from integrations.access.credentials import store_secret
from integrations.models import ProviderIntegration
from tests.factories.analytics import make_entry, store
from tests.factories.core import client_of, make_project
from tests.factories.datasets import item_body, make_dataset
from tests.fakes.scripted import Script, ScriptedServer, Step, answer
from tests.fakes.upstream import Connection, Received

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

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [body for body in self.sent() if kind_of(body) == kind]

    def dataset(self, *texts: str, expected: str | None = "Tomorrow.", **fields: Any) -> Dataset:
        """Returns a data set with an item for each text."""
        made = make_dataset(self.project, items=0)
        self.add(made, *texts, expected=expected, **fields)
        return made

    def add(self, dataset: Dataset, *texts: str, expected: str | None = "Tomorrow.", **fields: Any) -> None:
        bodies = [item_body(text, expected=expected, parameters={"model": MODEL}, **fields) for text in texts]
        items = [read_item(body) for body in bodies]
        add_items(project_id=self.project.pk, dataset_id=dataset.pk, items=items, actor="user:maker")
        dataset.refresh_from_db()

    def over(self, dataset: Dataset, *candidates: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Creates an experiment over a data set, and runs it."""
        made = self.create(*(candidates or ({},)), dataset_id=str(dataset.pk), **fields)
        run_all()
        return self.experiment(made["id"])

    @property
    def project_id(self) -> UUID:
        return self.project.pk


def by_request(reply: Callable[[dict[str, Any]], str], **extra: Any) -> Step:
    """Returns a step whose answer depends on the request's body."""

    async def step(request: Received, connection: Connection) -> None:
        await answer(reply(json.loads(request.body)), **extra)(request, connection)

    return step


def kind_of(body: dict[str, Any]) -> str:
    """Returns what a request asks for: an `answer`, the `grades` of a judge or a `comparison` by one."""
    schema = (body.get("response_format") or {}).get("json_schema") or {}
    return str(schema.get("name", "answer"))


def run_all() -> None:
    while run.run_due_experiment():
        pass


@pytest.fixture(autouse=True)
def without_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has failed requests be made again at once."""
    monkeypatch.setattr(slices, "RETRY_SECONDS", (0.0, 0.0, 0.0))


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
