"""Job 15: keep a plot as a chart of the team's dashboard. Within three clicks from the page that has it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from playwright.async_api import expect

from tests.live.operators.operator import Operator

_MAX_CLICKS = 3


async def test_job__keep_a_chart__stands_on_a_dashboard_with_its_values(operator: Operator) -> None:
    page, main = operator.page, operator.main
    await operator.open_whole("/admin/usage/", range="7d", group_by="provider")

    await operator.click(main.get_by_label(re.compile("More for Cost by .* and provider")))
    await operator.click(main.get_by_role("link", name=re.compile("Keep as chart ?: Cost by .* and provider")))
    title = f"Cost by provider {uuid4().hex[:6]}"
    await main.get_by_label("Title").fill(title)
    await operator.click(main.get_by_role("button", name="Keep"))

    chart = main.get_by_role("region", name=title)
    await expect(chart.get_by_role("img")).to_be_visible()
    assert operator.clicks <= _MAX_CLICKS
    found = re.search(r"/dashboards/([0-9a-f-]{36})/", page.url)
    assert found
    week_ago = (datetime.now(UTC) - timedelta(days=7)).isoformat()
    owner_sees = await chart.locator("table").text_content() or ""
    dearest = operator.api("metrics/cost", {"group_by": "provider", "start_date": week_ago})["results"][0]
    assert dearest["key"] in owner_sees

    # Shared, it is one link for everybody in the project; arranged, it stays so.
    await chart.get_by_text("Arrange").click()
    await chart.get_by_role("button", name="Whole width").click()
    await main.get_by_text("Rename, share or delete").click()
    await main.get_by_label("Everybody in the project sees it").check()
    await main.get_by_role("button", name="Save").click()
    shared = operator.api(f"dashboards/{found[1]}")
    kept = shared["charts"][-1]
    assert (shared["is_shared"], kept["title"], kept["is_wide"]) == (True, title, True)
    data = operator.api(f"dashboards/{found[1]}/charts/{kept['id']}/data")
    assert dearest["key"] in [one["key"] for one in data["series"]]
