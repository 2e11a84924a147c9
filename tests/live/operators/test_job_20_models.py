"""Job 20: choose a model by what it can and how it does here, and try it, within four clicks."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from playwright.async_api import expect

from tests.browser.actions import overflows, unlabelled
from tests.live.operators.operator import Operator

MAX_CLICKS = 4


async def test_job__choose_a_model__found_compared_and_open_in_the_playground(operator: Operator) -> None:
    page, main = operator.page, operator.main
    month_ago = datetime.now(UTC) - timedelta(days=30)
    (most_used, *_) = operator.api("models", {"limit": 5, "start_date": month_ago.isoformat()})["results"]

    await operator.navigate("Models")
    await operator.open("/admin/models/", range="30d")
    first = main.get_by_role("row").nth(1)
    await expect(first).to_contain_text(most_used["model"])
    assert await unlabelled(page) == [] and not await overflows(page)
    await operator.open("/admin/models/", q="sandbox/echo")
    await operator.click(main.get_by_role("link", name="echo", exact=True))
    await expect(main.get_by_role("heading", name="What it costs")).to_be_visible()
    assert not await overflows(page)
    await operator.click(main.get_by_role("link", name="Try in playground"))

    await expect(page).to_have_url(re.compile("model="))
    await expect(main.get_by_text("sandbox/echo").first).to_be_visible()
    assert operator.clicks <= MAX_CLICKS
