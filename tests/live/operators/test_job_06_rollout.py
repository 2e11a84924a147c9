"""Job 6, second half: roll a prompt's second version out, watch it, and stop it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.async_api import Locator, expect

from tests.browser.actions import overflows, unlabelled
from tests.browser.axe import violations
from tests.live.operators.looks import faults_of
from tests.live.operators.operator import Operator
from tests.live.prompts import Prompt, Team

MAX_CLICKS = 8
MAX_HEIGHT = 1400
"""The height in pixels of the page of a rollout that is young, at 1440 pixels of width."""

_FIRST: dict[str, Any] = {"system_prompt": "You sell {{goods}}.\nBe brief.", "model": "sandbox/mirror"}
_SECOND: dict[str, Any] = {**_FIRST, "system_prompt": "You sell {{goods}}.\nBe very brief."}


@pytest.fixture
def prompt(busy_team: Team) -> Iterator[Prompt]:
    prompt = busy_team.prompt(f"job-6-{uuid.uuid4().hex[:8]}", _FIRST, _SECOND)
    # The form chooses the only prompt by itself, and tests of other pages may have made none yet.
    busy_team.prompt(f"beside-{prompt.name}", _FIRST, _SECOND)
    yield prompt
    for rollout in busy_team.call("GET", f"rollouts?config_id={prompt.config_id}")["results"]:
        if rollout["status"] not in ("completed", "rolled_back"):
            busy_team.call("POST", f"rollouts/{rollout['id']}/rollback", {})


def field(operator: Operator, name: str, stage: int) -> Locator:
    return operator.main.get_by_role("textbox", name=f"{name}, stage {stage}", exact=True).or_(
        operator.main.get_by_role("spinbutton", name=f"{name}, stage {stage}", exact=True)
    )


async def test_rollout__planned_started_watched_and_stopped__within_its_clicks(
    operator: Operator, prompt: Prompt
) -> None:
    await operator.navigate("Rollouts")
    await operator.click(operator.main.get_by_role("link", name="New rollout"))
    await operator.choose(operator.main.get_by_label("Prompt", exact=True), prompt.name)
    await operator.click(operator.main.get_by_role("button", name="Continue"))

    await expect(operator.main.get_by_role("region", name="What changes")).to_contain_text("Be very brief.")
    await expect(operator.main.get_by_role("region", name="Forecast")).to_contain_text("had no requests")
    await operator.main.get_by_label("Name").fill("very brief")
    await operator.click(operator.main.get_by_role("button", name="Create and start"))

    verdict = operator.main.get_by_role("region", name="Verdict")
    await expect(verdict).to_contain_text("Stage 1 of 7 · 1 % · needs 20 more requests")
    await expect(verdict.get_by_role("listitem").and_(verdict.locator("[aria-current]"))).to_contain_text("1 % present")
    [listed] = operator.api(f"prompts/rollouts?config_id={prompt.config_id}")["results"]
    assert (listed["name"], listed["status"], listed["mode"]) == ("very brief", "running", "auto")
    assert not await faults_of(operator.page)
    assert await operator.page.evaluate("document.documentElement.scrollHeight") < MAX_HEIGHT
    compared = operator.api(f"prompts/rollouts/{listed['id']}/metrics")
    await expect(verdict).to_contain_text(compared["explanation"])
    arms = operator.main.get_by_role("region", name="Requests of the arms")
    await operator.click(arms.get_by_role("heading"))
    failures = arms.get_by_role("link", name="failures of Target: version 2")
    assert f"rollout_id={listed['id']}" in str(await failures.get_attribute("href"))

    await operator.click(operator.main.get_by_role("group", name="Actions").get_by_text("Roll back", exact=True))
    await operator.main.get_by_label("Reason").and_(operator.main.locator(":visible")).fill("users complained")
    await operator.click(operator.main.get_by_role("button", name="Yes, roll back"))

    await expect(verdict).to_contain_text("Rolled back · version 1 is served to everybody")
    await expect(verdict).to_contain_text("users complained")
    assert operator.api(f"prompts/rollouts/{listed['id']}")["transitions"][-1]["reason"] == "users complained"
    assert operator.clicks <= MAX_CLICKS


async def test_form__stages_changed__rows_move_up_and_the_forecast_follows(operator: Operator, prompt: Prompt) -> None:
    await operator.open("/admin/rollouts/new/", config=prompt.config_id)
    assert not [*await violations(operator.page), *await unlabelled(operator.page)]
    assert not await overflows(operator.page)

    # A way fills the stages in, and one's own may follow.
    await operator.main.locator("#stages > summary").click()
    for way, first in (("Fast", "10"), ("Standard", "1")):
        await operator.main.get_by_role("link", name=way).click()
        await expect(field(operator, "Share of the target (%)", 1)).to_have_value(first)
    for _ in range(5):
        await operator.main.get_by_role("button", name="Remove stage 1", exact=True).click()
    await expect(field(operator, "Share of the target (%)", 1)).to_have_value("75")
    await operator.main.get_by_role("button", name="Add a stage").click()
    await expect(field(operator, "Share of the target (%)", 3)).to_be_focused()
    await field(operator, "Share of the target (%)", 3).fill("90")
    forecast = operator.main.get_by_role("region", name="Forecast")
    await expect(forecast).to_contain_text("Weights rise: expected more than 100.")
    await field(operator, "Share of the target (%)", 2).fill("80")
    await expect(forecast).to_contain_text("The duration of the stages is unknown")

    await operator.main.get_by_role("button", name="Create", exact=True).click()

    await expect(operator.main.get_by_role("region", name="Verdict")).to_contain_text("Not started")
    [listed] = operator.api(f"prompts/rollouts?config_id={prompt.config_id}")["results"]
    assert [stage["weight"] for stage in listed["stages"]] == [75, 80, 90]
