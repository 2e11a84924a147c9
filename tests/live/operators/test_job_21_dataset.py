"""Job 21: take requests into a data set, say what is expected of one, and read the set by tag."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from playwright.async_api import expect

from tests.browser.actions import overflows, unlabelled
from tests.live.operators.operator import Operator

MAX_CLICKS = 2


async def test_job__data_set__from_the_request_log_in_two_clicks(operator: Operator) -> None:
    page, main = operator.page, operator.main
    # Opened from Requests, the form has its filters.
    await operator.open("/admin/datasets/", range="7d", outcome="success", take="1")
    operator.clicks = 0
    await page.get_by_label("Name of the new set").fill("Good ones")
    await page.get_by_label("How many").fill("5")
    await page.get_by_label("Tags").fill("good, easy")
    await operator.click(page.get_by_role("button", name="Add to the data set"))
    await expect(main.get_by_text("5 items are new in Good ones, version 1.")).to_be_visible()
    assert operator.clicks <= MAX_CLICKS
    assert await unlabelled(page) == []
    assert not await overflows(page)

    found = re.search(r"/datasets/[^/]+/([^/?]+)", page.url)
    assert found
    item = operator.api(f"datasets/{found[1]}/items")["results"][0]
    await operator.open(urlsplit(page.url).path, item=item["id"])
    await page.get_by_role("textbox", name="Expected").fill('{"answer": 42}')
    await operator.click(page.get_by_role("button", name="Save as a new version"))
    await expect(main.get_by_text("5 items, version 2")).to_be_visible()

    changed = operator.api(f"datasets/{found[1]}/items", {"tag": "good"})["results"]
    assert len(changed) == 5 and changed[0]["expected"] == {"answer": 42}
