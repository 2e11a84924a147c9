"""Job 7: find what was said. Within two clicks from anywhere."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import requests
from playwright.async_api import expect

from tests.live.operators.operator import Operator

_MAX_CLICKS = 2
_WORD = "parcel"


async def test_job_7__words_in_the_box__matches_marked_and_the_request_open(operator: Operator) -> None:
    box = operator.page.get_by_role("search").get_by_role("searchbox")
    await box.fill(_WORD)
    await operator.enter(box)

    hits = operator.page.get_by_role("region", name="In requests and answers").get_by_role("listitem")
    await expect(hits.first).to_be_visible()
    await expect(hits.first.locator("mark").first).to_have_text(_WORD, ignore_case=True)
    links = operator.page.locator(".hits .row-link")
    shown = [str(await link.get_attribute("href")) for link in await links.all()]
    expected = _found_by_the_api(operator)
    assert expected
    assert [any(request_id in href for href in shown) for request_id in expected] == [True] * len(expected)

    await operator.click(links.first)

    await expect(operator.page).to_have_url(re.compile("/admin/analytics/requests/"))
    assert operator.clicks <= _MAX_CLICKS


def _found_by_the_api(operator: Operator) -> list[str]:
    team, now = operator.team, datetime.now(UTC)
    body = {
        "project_id": team.project_id,
        "query": _WORD,
        "start_time": (now - timedelta(hours=23)).isoformat(),
        "limit": 10,
    }
    answer = requests.post(
        f"{team.service.base_url}/api/llm/search",
        json=body,
        headers={"Authorization": f"Bearer {team.api_key}", "X-Project-Id": team.project_id},
        timeout=30,
    )
    assert answer.status_code == 200, answer.text
    return [item["request_id"] for item in answer.json()["results"]]
