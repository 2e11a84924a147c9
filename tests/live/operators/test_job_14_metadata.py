"""Job 14: what do the applications of one team ask, but those of the canary? Within four clicks from Home."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import expect

from tests.browser.actions import overflows
from tests.browser.axe import violations
from tests.live.operators.operator import Operator
from tests.live.prompts import Project
from tests.waiting import wait_until

_MAX_CLICKS = 5
_TEAM = "orchard"
_SENT = {"tryout": "Where is order 4711?", "canary": "Where is order 4712?"}


@pytest.fixture
def asked(operator: Operator) -> None:
    for environment, question in _SENT.items():
        metadata = {"team": _TEAM, "environment": environment}
        body = {"name": f"{_TEAM} {environment}", "scopes": ["gateway"], "metadata": metadata}
        made = operator.team.call("POST", "../keys", body)
        own = Project(operator.team.service, operator.team.project_id, made["key"])
        messages = [
            {"role": "user" if place % 2 == 0 else "assistant", "content": f"Turn {place}"} for place in range(4)
        ]
        with own.client() as client:
            client.chat.completions.create(
                model="sandbox/echo",
                messages=[*messages, {"role": "user", "content": question}],  # type: ignore[list-item]  # roles by number
            )
    query = {"metadata": f"team:{_TEAM}", "start_date": (datetime.now(UTC) - timedelta(hours=1)).isoformat()}
    wait_until(lambda: operator.api("requests", query)["count"] >= len(_SENT), what="the questions in the log")


@pytest.mark.usefixtures("asked")
async def test_job_14__metadata__found_by_value_and_not_and_read_beside_the_list(operator: Operator) -> None:
    page = operator.page
    await operator.navigate("Requests")
    filters = page.get_by_role("group", name="Filters")
    await operator.click(operator.main.get_by_text("Filter", exact=True))
    await filters.get_by_text("Metadata: team", exact=True).hover()
    await operator.click(filters.get_by_role("link", name=_TEAM, exact=True))
    await expect(page.get_by_role("link", name=f"Metadata is team:{_TEAM}")).to_be_visible()
    # The filters stay open.
    await filters.get_by_text("Metadata: environment", exact=True).hover()
    # "not" comes with the pointer.
    await filters.get_by_role("link", name="canary", exact=True).hover()
    await operator.click(filters.get_by_role("link", name="not canary", exact=True))
    await expect(page.get_by_role("link", name="Metadata is not environment:canary")).to_be_visible()

    await page.wait_for_load_state()
    await page.keyboard.press("Escape")
    rows = page.get_by_role("region", name="The requests").get_by_role("row")
    await expect(rows.filter(has_text="Turn 0")).not_to_have_count(0)
    await operator.click(rows.nth(1).get_by_role("link").first)

    beside = page.get_by_role("complementary", name="The chosen request")
    await expect(beside.get_by_text(_SENT["tryout"], exact=True).first).to_be_visible()
    await expect(beside.get_by_text("Turn 0", exact=True)).to_be_hidden()
    assert operator.clicks <= _MAX_CLICKS
    assert not await overflows(page)
    assert not await violations(page)

    # The address has what is shown, and Escape closes it.
    shown = page.url
    await page.wait_for_load_state()
    await page.keyboard.press("Escape")
    await expect(beside).to_be_hidden()
    await page.goto(shown)
    await expect(beside.get_by_text(_SENT["tryout"], exact=True).first).to_be_visible()
