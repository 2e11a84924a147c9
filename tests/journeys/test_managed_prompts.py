"""A config, a rollout and many requests through a whole service: the request log agrees with the clients' answers."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from clickhouse_driver import Client

from rollouts.allocation import AllocationType
from tests.journeys.rows import rows_when
from tests.journeys.traffic import Project, new_project
from tests.live.service import LiveService
from tests.rollouts.allocation_sql import target_sql, unit_sql
from tests.waiting import TIMEOUT_SECONDS, wait_until

pytestmark = pytest.mark.live

WEIGHT = 30
USERS = 120


@dataclass(frozen=True)
class Api:
    """One project, by REST and as a client of the gateway; `answers` holds the latter's answers."""

    client: httpx2.Client
    project: Project
    answers: list[httpx2.Response] = field(default_factory=list)

    def post(self, path: str, content: dict[str, Any]) -> dict[str, Any]:
        headers = {"authorization": f"Bearer {self.project.key}", "x-project-id": self.project.id}
        response = self.client.post(f"/api/llm/prompts/{path}", json=content, headers=headers)
        assert response.is_success, response.text
        made: dict[str, Any] = response.json()
        return made

    def ask(self, **headers: str) -> httpx2.Response:
        sent = {
            "model": "sandbox/mirror",
            "messages": [{"role": "user", "content": "hi"}],
            "prompt_config": "support",
            "prompt_variables": {"name": "Ann"},
        }
        named = {f"x-svc-{name.replace('_', '-')}": value for name, value in headers.items()}
        response = self.client.post(
            "/api/gateway/v1/chat/completions",
            json=sent,
            headers={"authorization": f"Bearer {self.project.key}", **named},
        )
        assert response.status_code == 200, response.text
        self.answers.append(response)
        return response


def injected(response: httpx2.Response) -> str:
    (system, user) = json.loads(response.json()["choices"][0]["message"]["content"])
    assert (system["role"], user) == ("system", {"role": "user", "content": "hi"})
    text: str = system["content"]
    return text


def rolled_out(api: Api) -> str:
    config = api.post("configs", {"name": "support"})["id"]
    versions = [
        api.post(f"configs/{config}/versions", {"system_prompt": text})["id"]
        for text in ("Old for {{name}}.", "New for {{name}}.")
    ]
    rollout: str = api.post(
        "rollouts",
        {
            "config_id": config,
            "target_version_id": versions[1],
            "name": "journey",
            "mode": "manual",
            "allocation_type": "user_sticky",
            "stages": [{"weight": WEIGHT}, {"weight": 100}],
        },
    )["id"]
    api.post(f"rollouts/{rollout}/start", {})
    return rollout


def test_rollout__calls_of_many_users__log_and_arithmetic_agree_with_what_clients_saw(
    journey_service: LiveService,
) -> None:
    project = new_project(journey_service, "managed prompts")
    # Each request opens a connection, so that all workers are reached.
    limits = httpx2.Limits(max_keepalive_connections=0)
    with httpx2.Client(base_url=journey_service.base_url, timeout=TIMEOUT_SECONDS, limits=limits) as client:
        api = Api(client, project)
        rollout = rolled_out(api)
        wait_until(lambda: all("x-svc-variant" in api.ask().headers for _ in range(10)), what="the rollout everywhere")

        seen = Counter[tuple[str, str, str]]()
        for turn in range(2 * USERS):
            response = api.ask(user_id=f"user-{turn % USERS}")
            version, variant = response.headers["x-svc-prompt-version"], response.headers["x-svc-variant"]
            seen[f"user-{turn % USERS}", version, variant] += 1
            assert injected(response) == ("New for Ann." if version == "2" else "Old for Ann.")
        forced = api.ask(user_id="forced", force_variant="target")
        assert injected(forced) == "New for Ann."

    # Every user gets one version only, on whatever worker.
    assert set(seen.values()) == {2}
    assert len(seen) == USERS
    rows_when(journey_service, project.id, lambda rows: rows.total == len(api.answers), what="more of the rows")
    logged = logged_arms(journey_service, project.id, rollout)
    assert {(user, str(version), variant) for user, version, variant, _ in logged if user.startswith("user-")} == set(
        seen
    )
    assert all(agrees for user, _, _, agrees in logged if user.startswith("user-"))
    assert [(version, variant) for user, version, variant, _ in logged if user == "forced"] == [(2, "target")]


def logged_arms(service: LiveService, project_id: str, rollout: str) -> list[tuple[str, int, str, bool]]:
    unit = unit_sql(AllocationType.USER_STICKY)
    arm = f"if({target_sql(unit, str(WEIGHT))}, 'target', 'baseline')"
    # The driver inserts parameters with Python's % operator.
    agrees = f"alloc_unit = {unit} AND variant = {arm}".replace("%", "%%")
    address = (service.var_dir / "run" / "clickhouse.url").read_text().strip()
    with Client.from_url(address) as client:
        found: list[tuple[str, int, str, bool]] = client.execute(
            f"SELECT user_id, prompt_version, variant, {agrees} FROM llm.requests"  # noqa: S608 - expressions of the product's own
            " WHERE project_id = %(project)s AND rollout_id = %(rollout)s",
            {"project": project_id, "rollout": rollout},
        )
    return found
