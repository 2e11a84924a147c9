"""Rollouts that the scores of their answers decide, on the whole product: a rule scores a matched sample of what
clients got, the workers of Celery take it from the log, and beat judges it."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Lock

import pytest
from playwright.async_api import Page, expect

from tests.browser.actions import sign_in
from tests.live.playground import Account, make_account
from tests.live.prompts import JSON, Prompt, Rollout, Team, ask
from tests.live.service import LiveService
from tests.waiting import wait_until

RULE = "is polite"
# The model answers with the messages that it was sent, system prompt and all.
BASELINE: JSON = {
    "system_prompt": "You sell {{goods}}, and are polite.",
    "model": "sandbox/mirror",
    "variables": [{"name": "goods", "type": "string", "required": True}],
}
POLITE: JSON = {**BASELINE, "system_prompt": "You sell {{goods}}, and are polite and brief."}
RUDE: JSON = {**BASELINE, "system_prompt": "You sell {{goods}}, and are rude."}
# Only scores can end this stage within a test: neither of them is there for an hour.
STAGES: list[JSON] = [{"weight": 50, "min_duration_minutes": 60, "min_requests": 20}, {"weight": 100}]
# Where all scores of both arms are alike, so many answers of each show that no more is lost than the margin of 0.1.
ENOUGH_TO_PASS = 90
# Where all of one arm are bad and all of the other good, far fewer show that something is.
ENOUGH_TO_FAIL = 30
_ARMS = ("target", "baseline")
_CLIENTS = 4
# A minute closes, its sample is taken and scored, and the verdict takes it when the next minute closes at the latest.
_VERDICT_SECONDS = 300


@pytest.fixture(scope="module")
def team(live_service: LiveService) -> Team:
    return Team(live_service, "scored rollouts")


@pytest.fixture(scope="module")
def account(team: Team) -> Account:
    return make_account(team, "reader")


@pytest.fixture(scope="module")
def rule(team: Team) -> str:
    made = team.call("POST", "../evaluators", {"name": RULE, "kind": "contains", "definition": {"value": "polite"}})
    evaluator_id: str = made["id"]
    team.call("POST", "../online-evaluations", {"evaluator_id": evaluator_id, "rate": 1, "matched": True})
    return evaluator_id


async def test_rude_and_polite_targets__rolled_back_with_the_reason_and_passing(
    team: Team, rule: str, account: Account, page: Page
) -> None:
    rude = _scored(team.prompt("rude", BASELINE, RUDE), rule)
    polite = _scored(team.prompt("polite", BASELINE, POLITE), rule)
    _serve(polite, "polite", ENOUGH_TO_PASS)
    _serve(rude, "rude", ENOUGH_TO_FAIL)

    wait_until(lambda: rude.shown()["status"] == "rolled_back", seconds=_VERDICT_SECONDS, what="the rude one to go")
    wait_until(lambda: _evaluated(polite)["status"] == "passing", seconds=_VERDICT_SECONDS, what="the polite to pass")

    reason = rude.transition("roll_back")["reason"]
    _assert_rolled_back(rude, reason)
    _assert_passing(polite)
    await sign_in(page, team.service.base_url, account.name, account.password)
    await page.goto(f"{team.service.base_url}/admin/rollouts/rollout/{rude.id}/change/?project={team.project_id}")
    verdict = page.get_by_role("region", name="Verdict")
    await expect(verdict).to_contain_text("rolled back")
    await expect(verdict).to_contain_text(reason)
    assert polite.move("complete")["status"] == "completed"


def _scored(prompt: Prompt, rule: str) -> Rollout:
    return prompt.rollout(mode="auto", stages=STAGES, quality=[{"evaluator_id": rule, "required": True}])


def _serve(rollout: Rollout, name: str, answers: int) -> None:
    served: Counter[str] = Counter()
    numbers, lock = count(), Lock()

    def ask_until_served(_: int) -> None:
        with rollout.team.client() as client:
            while min(served[arm] for arm in _ARMS) < answers:
                answer = ask(client, name, f"Have you got {next(numbers)} kinds?")
                with lock:
                    served[answer.variant] += answer.status == 200
                if served["target"] and not answer.variant:
                    return  # Its worker knows of the rollout's end, or not yet of its begin; others go on.

    with ThreadPoolExecutor(_CLIENTS) as pool:
        list(pool.map(ask_until_served, range(_CLIENTS)))
    rollout.wait_until_recorded(target=served["target"], baseline=served["baseline"])


def _evaluated(rollout: Rollout) -> JSON:
    (found,) = rollout.metrics()["quality"]["evaluators"]
    evaluator: JSON = found
    return evaluator


def _assert_rolled_back(rollout: Rollout, reason: str) -> None:
    assert reason.startswith(f"{RULE}@1: 0 % against 100 %. Certain enough to roll back.")
    found = rollout.metrics()
    assert (found["decision"], found["reason"], found["quality"]["action"]) == (
        "roll_back", "quality_failing", "roll_back",
    )  # fmt: skip
    evaluator = _evaluated(rollout)
    assert (evaluator["status"], evaluator["worse"], evaluator["target"], evaluator["baseline"]) == (
        "failing", True, 0.0, 1.0,
    )  # fmt: skip
    assert evaluator["decides"]


def _assert_passing(rollout: Rollout) -> None:
    found = rollout.metrics()
    # What it still waits for is the time of its stage, and no evaluator.
    assert (found["rollout_status"], found["reason"], found["quality"]["required"]) == (
        "running", "minimum_duration", [],
    )  # fmt: skip
    evaluator = _evaluated(rollout)
    assert (evaluator["target"], evaluator["baseline"], evaluator["not_passing"]) == (1.0, 1.0, None)
    for tasks in (evaluator["tasks"][arm] for arm in _ARMS):
        assert tasks["due"] >= tasks["judged"] > 0
        assert (tasks["missing"], tasks["judged_missing"]) == (0, 0)
