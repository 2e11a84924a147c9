"""Outcomes that the application sends after its sessions and requests, on the whole product: one that falls rolls a
rollout back, and an A/B test of one ends with its verdict."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple
from uuid import uuid4

import pytest
from playwright.async_api import Page, expect

from tests.browser.actions import sign_in
from tests.live.playground import make_account
from tests.live.prompts import JSON, Rollout, Team
from tests.live.service import LiveService
from tests.live.test_scored_rollouts import BASELINE, POLITE
from tests.waiting import wait_until

_VERDICT_SECONDS = 300
_CLIENTS = 4
# All outcomes of one arm are bad and all of the other good.
_ENOUGH_TO_FAIL = 80
# The metrics have to pass too before the target wins: each exact signal takes some 410 answers of it.
_ENOUGH_TO_WIN = 1_100


class Served(NamedTuple):
    variant: str
    request_id: str
    session_id: str


@pytest.fixture(scope="module")
def team(live_service: LiveService) -> Team:
    return Team(live_service, "outcomes-of-applications")


async def test_outcomes__one_that_falls_and_the_goal_of_a_test__rolled_back_and_decided(team: Team, page: Page) -> None:
    falling = team.prompt("falling", BASELINE, POLITE).rollout(
        mode="auto",
        allocation_type="session_sticky",
        stages=[{"weight": 50, "min_duration_minutes": 60, "min_requests": 20}, {"weight": 100}],
        quality=[{"score_name": "resolved"}],
    )
    tested = team.prompt("tested", BASELINE, POLITE).rollout(
        mode="auto",
        stages=[{"weight": 50, "min_duration_minutes": 0, "min_requests": 20, "settle_minutes": 0}],
        quality=[{"score_name": "converted", "goal": True}],
        # These vary too much to pass within a test.
        policy=dict.fromkeys(("latency_p95", "latency_average", "cost_per_request"), "ignore"),
    )
    _send(
        team, _serve(team, falling, "falling", _ENOUGH_TO_FAIL), "resolved", "session_id", lambda arm: arm == "baseline"
    )
    _send(team, _serve(team, tested, "tested", _ENOUGH_TO_WIN), "converted", "request_id", lambda arm: arm == "target")

    wait_until(lambda: falling.shown()["status"] == "rolled_back", seconds=_VERDICT_SECONDS, what="the rollback")
    wait_until(lambda: tested.shown()["status"] == "completed", seconds=_VERDICT_SECONDS, what="the test to end")

    assert falling.transition("roll_back")["reason"].startswith("resolved: 0 % against 100 %. Certain enough to")
    [one] = falling.metrics()["quality"]["evaluators"]
    # What had not arrived when the rollout ended stays missing.
    assert all(tasks["done"] > 0 for tasks in one["tasks"].values())
    assert tested.shown()["kind"] == "ab_test"
    assert tested.metrics()["quality"]["goal"]["verdict"] == "better"
    account = make_account(team, "reader")
    await sign_in(page, team.service.base_url, account.name, account.password)
    await page.goto(f"{team.service.base_url}/admin/rollouts/rollout/{tested.id}/change/?project={team.project_id}")
    first = page.get_by_role("region", name="Verdict").locator("p").first
    await expect(first).to_contain_text("converted is better with the target: 100 % against 0 %.")
    sentence = (await first.inner_text()).split(". ")[0]
    assert len(sentence.split()) <= 20


def _serve(team: Team, rollout: Rollout, prompt: str, requests: int) -> list[Served]:
    def ask(number: int) -> Served:
        session_id = str(uuid4())
        raw = client.chat.completions.with_raw_response.create(
            model="auto",
            messages=[{"role": "user", "content": f"Have you got {number} kinds?"}],
            extra_body={"prompt_config": prompt, "prompt_variables": {"goods": "tea"}},
            extra_headers={"x-svc-session-id": session_id},
        )
        headers = raw.http_response.headers
        return Served(headers.get("x-svc-variant", ""), headers["x-request-id"], session_id)

    with team.client() as client, ThreadPoolExecutor(_CLIENTS) as pool:
        # Each worker learns of the rollout in its own time.
        found = [one for one in pool.map(ask, range(requests)) if one.variant]
    arms = {arm: sum(one.variant == arm for one in found) for arm in ("target", "baseline")}
    rollout.wait_until_recorded(**arms)
    return found


def _send(team: Team, served: list[Served], name: str, key: str, good: Callable[[str], bool]) -> None:
    scores: list[JSON] = [
        {key: getattr(one, key), "score_name": name, "score_value": good(one.variant), "score_type": "boolean"}
        for one in served
    ]
    for start in range(0, len(scores), 500):
        body = {"project_id": team.project_id, "scores": scores[start : start + 500]}
        team.call("POST", "../scores/batch", body)
