"""Every page of the operators' product, at both widths, light and dark, and without scripts."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize

from tests.browser.actions import overflows, unlabelled
from tests.browser.axe import violations
from tests.browser.problems import Problems
from tests.live.operators.conftest import signed_in
from tests.live.operators.crawl import every_page, path_of
from tests.live.playground import Account
from tests.live.prompts import Team

LOOKS = [(1440, "light"), (1440, "dark"), (400, "light"), (400, "dark")]

_UNLINKED = "found => found.filter(element => !element.getAttribute('href')).map(element => element.outerHTML)"
_MIN_CHARACTERS = 40


@pytest_asyncio.fixture(loop_scope="session")
async def sized_page(chromium: Browser, request: pytest.FixtureRequest) -> AsyncIterator[Page]:
    width, scheme = request.param
    context = await chromium.new_context(
        viewport=ViewportSize(width=width, height=900),
        color_scheme=scheme,
        locale="en-GB",
        timezone_id="America/New_York",
    )
    problems = Problems(context)
    yield await context.new_page()
    await problems.settle()
    problems.check()
    await context.close()


@pytest.mark.parametrize("sized_page", LOOKS, indirect=True, ids=lambda look: f"{look[0]}-{look[1]}")
async def test_every_page__looked_at__accessible_and_inside_its_window(
    sized_page: Page, busy_team: Team, administrator: Account
) -> None:
    await signed_in(sized_page, busy_team, administrator)
    wrong: dict[str, list[str]] = {}
    for address in await every_page(sized_page):
        answer = await sized_page.goto(address)
        path = path_of(address)
        assert answer is not None and answer.status == 200, path
        assert "default-src 'none'" in answer.headers["content-security-policy"], path
        found = [*await violations(sized_page), *await unlabelled(sized_page)]
        found += ["scrolls sideways"] if await overflows(sized_page) else []
        found += await sized_page.eval_on_selector_all("[data-id]", _UNLINKED)
        if found:
            wrong[path] = found

    assert not wrong, "\n".join(f"{path}\n  " + "\n  ".join(found) for path, found in wrong.items())


async def test_every_page__without_scripts__says_the_same(
    chromium: Browser, page: Page, busy_team: Team, administrator: Account
) -> None:
    await signed_in(page, busy_team, administrator)
    addresses = await every_page(page)
    context = await chromium.new_context(java_script_enabled=False, storage_state=await page.context.storage_state())
    plain = await context.new_page()
    wrong = {}
    for address in addresses:
        answer = await plain.goto(address)
        assert answer is not None and answer.status == 200, path_of(address)
        text = await plain.get_by_role("main").inner_text()
        # A page that only a script fills would have its heading and little more.
        if "Loading…" in text or len(text) < _MIN_CHARACTERS:
            wrong[path_of(address)] = text
    await context.close()

    assert not wrong
