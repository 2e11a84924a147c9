"""Job 2: why did a user's request fail an hour ago? Within four clicks from Home."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from playwright.async_api import expect

from tests.live.operators.operator import Operator

_MAX_CLICKS = 4


async def test_job_2__failed_request_of_a_user__reason_in_its_row_and_on_its_page(operator: Operator) -> None:
    now = datetime.now(UTC)
    recent = {"start_date": (now - timedelta(hours=20)).isoformat(), "outcome": "error", "limit": 1000}
    failed = next(item for item in operator.api("requests", recent)["results"] if item["user_id"])

    # The id of a user leads to the user's page, whose failures lead to the requests.
    box = operator.page.get_by_role("search").get_by_role("searchbox")
    await box.fill(failed["user_id"])
    await operator.enter(box)
    await operator.click(operator.main.get_by_role("link", name=re.compile("^Failed")))
    await expect(operator.page.get_by_role("link", name="Outcome is error")).to_be_visible()
    listed = operator.page.get_by_role("region", name="The requests").get_by_role("table")
    row = listed.get_by_role("row").filter(has_text=failed["error"]["code"]).first
    await expect(row).to_contain_text("error")
    await operator.click(row.get_by_role("link").first)

    # The request is shown beside the list, which stays.
    beside = operator.page.get_by_role("complementary", name="The chosen request")
    await expect(beside).to_contain_text(failed["error"]["code"])
    await expect(row).to_be_visible()
    assert operator.clicks <= _MAX_CLICKS


async def test_job_2__by_the_filters_of_the_list__finds_the_same(operator: Operator) -> None:
    recent = {"start_date": (datetime.now(UTC) - timedelta(hours=20)).isoformat(), "outcome": "error", "limit": 1000}
    failed = next(item for item in operator.api("requests", recent)["results"] if item["user_id"])

    await operator.navigate("Requests")
    await operator.click(operator.main.get_by_text("Filter", exact=True))
    await operator.click(operator.main.get_by_text("More filters", exact=True))
    user = operator.main.get_by_role("textbox", name="User", exact=True)
    await user.fill(failed["user_id"])
    await operator.enter(user)

    await expect(operator.page.get_by_role("link", name=f"User is {failed['user_id']}")).to_be_visible()
    listed = operator.page.get_by_role("region", name="The requests").get_by_role("table")
    assert operator.clicks <= _MAX_CLICKS
    await expect(listed).to_contain_text(failed["user_id"])
