from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest
from django.test import AsyncRequestFactory
from rest_framework.response import Response
from rest_framework.test import APIClient

from core.http.arrival import ARRIVED_AT
from core.models import Project
from prompts.models import PromptConfig
from rollouts.verdicts import evaluate
from rollouts.viewsets import RolloutViewSet
from tests.factories.core import client_of, make_key, make_project
from tests.factories.prompts import make_config
from tests.rollouts.request_log import RequestLog, StillClock, this_minute

PATH = "/api/llm/prompts/rollouts"


@dataclass(frozen=True)
class Api:
    """A project with one config of two versions, and a client that may manage it."""

    client: APIClient
    project: Project
    config: PromptConfig

    @property
    def target(self) -> str:
        return str(self.config.versions.get(number=2).pk)

    @property
    def baseline(self) -> str:
        return str(self.config.versions.get(number=1).pk)

    def create(self, **fields: Any) -> Any:
        body = {"config_id": str(self.config.pk), "target_version_id": self.target, "name": "test"}
        return self.client.post(PATH, {**body, **fields})

    def created(self, **fields: Any) -> dict[str, Any]:
        response = self.create(**fields)
        assert response.status_code == 201, response.content
        found: dict[str, Any] = response.json()
        return found

    def move(self, rollout_id: str, move: str, **body: Any) -> Any:
        return self.client.post(f"{PATH}/{rollout_id}/{move}", body)

    def get(self, rollout_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get(f"{PATH}/{rollout_id}").json()
        return found


def promoted(api: Api, rollout_id: str, *, arrived_at: datetime) -> tuple[int, dict[str, Any]]:
    """Returns the status and body of the answer to a promotion that reached the server at that time and is handled
    now."""
    headers = {"Authorization": f"Bearer {make_key(api.project)[1]}", "X-Project-Id": str(api.project.pk)}
    request = AsyncRequestFactory().post(f"{PATH}/{rollout_id}/promote", {}, "application/json", headers=headers)
    request.scope = {**request.scope, ARRIVED_AT: arrived_at}
    response = RolloutViewSet.as_view({"post": "promote"})(request, rollout_id=rollout_id)
    assert isinstance(response, Response)
    response.render()
    return response.status_code, json.loads(response.content)


@pytest.fixture
def api(db: None) -> Api:
    return new_api()


def new_api() -> Api:
    project = make_project()
    return Api(client_of(project), project, make_config(project, versions=2))


@pytest.fixture
def still_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closes the minutes before this one, and no further one."""
    minute = this_minute()
    monkeypatch.setattr(StillClock, "minute", minute)
    monkeypatch.setattr(evaluate, "closed_until", lambda _: minute)


@pytest.fixture
def info_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "rollouts")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> RequestLog:
    """A request log in memory, in place of ClickHouse."""
    log = RequestLog()
    log.take_the_place(monkeypatch)
    return log
