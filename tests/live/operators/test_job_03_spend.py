"""Job 3: what do we spend, on what, and will we exceed the budget? Within two clicks from Home."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from core.ui import formats
from tests.live.operators.operator import Operator

_MAX_CLICKS = 2
_BUDGET = 1.0


async def test_job_3__spend_by_user_and_the_month_against_its_budget(operator: Operator) -> None:
    operator.team.set(monthly_budget_usd=_BUDGET)
    await operator.navigate("Usage and cost")

    month = operator.page.get_by_role("region", name="This month")
    usage = operator.api("usage")["month"]
    assert usage["forecast_usd"] > _BUDGET
    await month.get_by_text("over budget").first.wait_for()
    await month.get_by_text(formats.money(usage["forecast_usd"])).first.wait_for()
    plot = month.get_by_role("img", name=re.compile("Spend of the month"))
    assert "budget: $1.00" in (await plot.get_attribute("aria-label") or "")

    await operator.click(operator.main.get_by_role("link", name="User", exact=True))

    table = operator.page.get_by_role("region", name="Cost by user").get_by_role("table")
    await table.wait_for()
    day_ago = datetime.now(UTC) - timedelta(days=1)
    found = operator.api("metrics/cost", {"group_by": "user", "start_date": day_ago.isoformat()})["results"]
    # Requests without a user may cost more than those of any user, and have no link.
    place, first = next((place, one) for place, one in enumerate(found) if one["key"])
    row = table.get_by_role("row").nth(1 + place)
    link = row.locator("[data-id]")
    assert await link.get_attribute("data-id") == first["key"]
    assert f"/users/{operator.team.project_id}/{first['key']}" in (await link.get_attribute("href") or "")
    assert formats.money(first["total_cost_usd"]) in await row.inner_text()
    assert operator.clicks <= _MAX_CLICKS


async def test_usage__csv__downloads_what_is_shown(operator: Operator) -> None:
    await operator.open("/admin/usage/", range="7d", group_by="provider")
    async with operator.page.expect_download() as started:
        await operator.click(operator.main.get_by_role("link", name="Download as CSV"))
    download = await started.value

    text = (await download.path()).read_text(encoding="utf-8")

    assert download.suggested_filename == "cost-by-provider.csv"
    shown = await operator.page.get_by_role("region", name="Cost by provider").get_by_role("table").inner_text()
    keys = [line.split(",")[0] for line in text.splitlines()[1:]]
    assert keys
    assert all(key in shown for key in keys if key)
