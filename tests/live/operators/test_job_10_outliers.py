"""Job 10: which requests are slow or expensive? Within three clicks from Home."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import expect

from tests.live.operators.operator import Operator

_MAX_CLICKS = 3


@pytest.mark.parametrize(("heading", "sort"), [("Took", "-latency_ms"), ("Cost", "-cost_usd")])
async def test_job_10__heading_of_the_list__largest_first_as_the_api_has_them(
    operator: Operator, heading: str, sort: str
) -> None:
    await operator.navigate("Requests")
    panel = operator.page.get_by_role("region", name="The requests")
    await operator.click(panel.get_by_role("columnheader", name=heading).get_by_role("link"))

    await expect(panel.get_by_role("columnheader", name=heading)).to_have_attribute("aria-sort", "descending")
    links = [str(await link.get_attribute("href")) for link in await panel.locator(".row-link").all()]
    day_ago = (datetime.now(UTC) - timedelta(hours=24)).isoformat()
    largest = operator.api("requests", {"sort": sort, "start_date": day_ago, "limit": 5})["results"]
    places = [next(place for place, href in enumerate(links) if item["request_id"] in href) for item in largest]
    assert places == sorted(places)

    await operator.click(panel.locator(".row-link").first)
    beside = operator.page.get_by_role("complementary", name="The chosen request")
    whole = beside.get_by_role("link", name="Open the request")
    await expect(whole).to_have_attribute("href", re.compile(f"/{largest[0]['request_id']}/"))
    assert operator.clicks <= _MAX_CLICKS
