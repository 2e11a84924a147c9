"""Job 19: say something about a request, give it to somebody, and find it again under one's own, within four clicks."""

from __future__ import annotations

import re

from playwright.async_api import expect

from tests.browser.actions import overflows, unlabelled
from tests.live.operators.operator import Operator
from tests.live.playground import Account

MAX_CLICKS = 4


async def test_job__hand_over_a_request__comment_assign_and_find_it(operator: Operator, administrator: Account) -> None:
    page, main = operator.page, operator.main
    (found,) = operator.api("requests", {"limit": 1})["results"]
    address = f"{operator.team.service.base_url}/admin/r/{found['request_id']}"
    await page.goto(address)
    await expect(page).to_have_url(re.compile(f"/requests/{operator.team.project_id}/{found['request_id']}/"))
    assert await main.locator("#short-address").text_content() == address

    operator.clicks = 0
    await main.get_by_label("Write a comment").fill(f"Why so slow, @{administrator.name}?")
    await operator.click(main.get_by_role("button", name="Add comment"))
    comments = main.get_by_role("list", name="Comments")
    await expect(comments.get_by_text("Why so slow").first).to_be_visible()
    await expect(comments.get_by_role("link", name=f"@{administrator.name}")).to_be_visible()
    assert await unlabelled(page) == [] and not await overflows(page)
    # The form proposes whoever is signed in.
    await operator.click(main.get_by_role("button", name="Assign", exact=True))
    await expect(main.get_by_text(f"Assigned to {administrator.name}").first).to_be_visible()

    await operator.navigate("Assignments")
    await expect(main.get_by_text("Why so slow")).to_be_visible()
    row = main.get_by_role("region", name="Assigned").get_by_role("link").filter(has_text=found["request_id"])
    await operator.click(row)

    await expect(main.get_by_role("button", name="Done")).to_be_visible()
    assert operator.clicks <= MAX_CLICKS
    (assignment,) = operator.api("assignments", {"assignee": administrator.name})["results"]
    assert assignment["request_id"] == found["request_id"] and assignment["state"] == "open"
