"""The pages for everybody in a browser under the policy; `tests/live/operators` looks at the others."""

from __future__ import annotations

import pytest
from playwright.async_api import Page

from tests.browser.problems import Problems
from tests.live.service import LiveService


@pytest.mark.parametrize("path", ["/", "/api/docs/", "/api/redoc/", "/admin/login/"])
async def test_page__for_everybody__keeps_to_the_policy(page: Page, live_service: LiveService, path: str) -> None:
    answer = await page.goto(live_service.base_url + path, wait_until="networkidle")
    assert answer is not None and answer.status == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]


async def test_page__that_is_not_there__leads_back(page: Page, live_service: LiveService, problems: Problems) -> None:
    problems.expect("status of 404")
    answer = await page.goto(f"{live_service.base_url}/nowhere")
    assert answer is not None and answer.status == 404
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    await page.get_by_role("link", name="Start page").click()
    await page.get_by_role("link", name="Admin").click()
    await page.wait_for_url("**/admin/login/**")
