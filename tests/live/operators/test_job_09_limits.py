"""Job 9: set limits and guardrails, and see what they refused. Within four clicks each, from Home."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import requests
from playwright.async_api import Locator, expect

from tests.live.operators.operator import Operator
from tests.waiting import wait_until

_MAX_CLICKS = 4
_TRIES = 10
_ADDRESS = "ann.miller@example.com"


def _complete(operator: Operator, text: str) -> int:
    team = operator.team
    answer = requests.post(
        f"{team.service.base_url}/api/gateway/v1/chat/completions",
        headers={"Authorization": f"Bearer {team.api_key}"},
        json={"model": "sandbox/mirror", "messages": [{"role": "user", "content": text}]},
        timeout=30,
    )
    return answer.status_code


def _until_now() -> dict[str, str]:
    return {"end_date": datetime.now(UTC).replace(microsecond=0).isoformat()}


async def _row(operator: Operator, path: str, region: str, name: str) -> Locator:
    """Opens a page until the panel, which gives up after two seconds on a busy machine, has the row."""
    found = operator.main.get_by_role("region", name=region).get_by_role("row", name=name)
    for _ in range(_TRIES):
        await operator.open(path, range="1h")
        if await found.count():
            break
    await expect(found).to_be_visible()
    return found


async def test_job_9__guardrail__tried_on_the_past_reviewed_saved_and_its_refusals_seen(operator: Operator) -> None:
    operator.team.set()
    await operator.navigate("Guardrails")
    await operator.main.get_by_role("combobox", name="What follows from a finding").select_option("enforce")
    await operator.main.get_by_role("checkbox", name="Refuse requests with personal data").check()

    await operator.click(operator.main.get_by_role("button", name="Try on the last 7 days"))
    trial = operator.main.get_by_role("region", name="The last 7 days with these rules")
    await expect(trial.get_by_role("row", name="Personal data")).to_be_visible()
    assert operator.api("settings")["guardrails"]["trust_mode"] == "off"

    await operator.click(operator.main.get_by_role("button", name="Review changes"))
    review = operator.main.get_by_role("region", name="Review before saving")
    await expect(review.get_by_role("row", name="Refuse requests with personal data")).to_contain_text("on")
    await operator.click(review.get_by_role("button", name="Save changes"))
    await expect(operator.page.get_by_text("Saved; every worker has it within a second.")).to_be_visible()
    assert operator.clicks <= _MAX_CLICKS

    wait_until(lambda: _complete(operator, f"Write to {_ADDRESS}") == 400)
    wait_until(lambda: operator.api("metrics/guardrails", _until_now())["results"])
    row = await _row(operator, "/admin/guardrails/", "What each rule found", "Personal data")
    await operator.click(row.get_by_role("link").first)
    await expect(operator.page).to_have_url(re.compile("error_code=pii_detected"))
    assert _ADDRESS not in operator.page.url


async def test_job_9__limit__set_and_its_refusals_seen(operator: Operator) -> None:
    operator.team.set()
    await operator.navigate("Limits and budgets")
    await operator.main.get_by_role("checkbox", name="Limit requests and tokens per minute").check()
    await operator.main.get_by_role("spinbutton", name="Requests per minute", exact=True).fill("1")
    await operator.click(operator.main.get_by_role("button", name="Review changes"))
    await operator.click(operator.main.get_by_role("button", name="Save changes"))
    await expect(operator.page.get_by_text("Saved; every worker has it within a second.")).to_be_visible()
    assert operator.clicks <= _MAX_CLICKS
    assert operator.api("settings")["rate_limit_rpm"] == 1

    wait_until(lambda: _complete(operator, "Hello") == 429)
    wait_until(
        lambda: any(
            one["code"] == "requests_per_minute" for one in operator.api("metrics/errors", _until_now())["results"]
        )
    )
    row = await _row(operator, "/admin/limits/", "What limits refused", "Requests per minute")
    await operator.click(row.get_by_role("link").first)
    await expect(operator.page).to_have_url(re.compile("error_code=requests_per_minute"))
    operator.team.set()
