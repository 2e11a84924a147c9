from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import openai
import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.actions import overflows
from tests.browser.axe import violations
from tests.live.operators.conftest import signed_in
from tests.live.operators.looks import WIDE
from tests.live.operators.operator import Operator
from tests.live.playground import make_account
from tests.live.prompts import Team
from tests.live.service import LiveService
from tests.waiting import wait_until

_REFUSALS = 50
_MIN_IN_SIGHT, _MAX_ROW, _MAX_NARROW = 22, 28, 5_000
_ROWS = """
() => [...document.querySelectorAll(".lines tbody tr")].map((row) => {
  const { top, bottom, height } = row.getBoundingClientRect();
  return { height, isInSight: top >= 0 && bottom <= innerHeight };
})
"""


@pytest_asyncio.fixture(loop_scope="session")
async def reader_of_refusals(page: Page, live_service: LiveService) -> Operator:
    team = Team(live_service, f"refused {uuid.uuid4().hex[:6]}")
    team.set(guardrails={"trust_mode": "enforce", "pii_block_on_detect": True})
    with team.client() as client:
        for place in range(_REFUSALS):
            content = f"My card is 4111 1111 1111 1111, my mail ann{place}@example.com"
            with pytest.raises(openai.BadRequestError):
                client.chat.completions.create(
                    model="sandbox/echo", user=f"ann-{place}", messages=[{"role": "user", "content": content}]
                )
    account = make_account(team, "administrator")
    person = await signed_in(page, team, account)
    query = {"start_date": (datetime.now(UTC) - timedelta(hours=1)).isoformat()}
    wait_until(lambda: person.api("requests", query)["count"] >= _REFUSALS, what="the refusals in the log")
    return person


async def test_requests__fifty_refusals__each_a_line_and_a_screen_full_in_sight(reader_of_refusals: Operator) -> None:
    person, page = reader_of_refusals, reader_of_refusals.page
    await page.set_viewport_size(WIDE)
    await person.open_whole("/admin/analytics/requests/", outcome="error", range="1h")

    rows = await page.evaluate(_ROWS)
    assert len(rows) == _REFUSALS
    assert max(row["height"] for row in rows) <= _MAX_ROW
    assert sum(row["isInSight"] for row in rows) >= _MIN_IN_SIGHT
    assert not await overflows(page)

    # With a request beside it the list still does not scroll sideways, and j moves on.
    await page.locator(".lines .row-link").nth(2).click()
    beside = page.get_by_role("complementary", name="The chosen request")
    await expect(beside).to_contain_text("Refused by the guardrail")
    first = page.url
    await page.keyboard.press("j")
    await page.wait_for_url(lambda url: url != first)
    assert not await overflows(page)
    assert not await violations(page)
    await page.keyboard.press("Escape")
    await expect(beside).to_be_hidden()

    await page.set_viewport_size({"width": 400, "height": 900})
    assert await page.evaluate("document.documentElement.scrollHeight") < _MAX_NARROW
    assert not await overflows(page)
    assert await page.get_by_role("group", name="Filters").count() == 0
