"""What holds for every page of the operators' product, at both widths, light and dark."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize

from tests.browser.actions import overflows, unlabelled
from tests.browser.axe import violations
from tests.browser.problems import Problems
from tests.live.operators.conftest import signed_in
from tests.live.operators.operator import Operator
from tests.live.playground import Account
from tests.live.prompts import Team

LOOKS = [(1440, "light"), (1440, "dark"), (400, "light"), (400, "dark")]

_UNLINKED = "found => found.filter(element => !element.getAttribute('href')).map(element => element.outerHTML)"
_ADDRESSES = "links => links.map(link => link.href)"


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
    person = await signed_in(sized_page, busy_team, administrator)
    wrong: dict[str, list[str]] = {}
    for address in await _pages(person):
        answer = await sized_page.goto(address)
        path = urlsplit(address).path
        assert answer is not None and answer.status == 200, path
        assert "default-src 'none'" in answer.headers["content-security-policy"], path
        found = [*await violations(sized_page), *await unlabelled(sized_page)]
        found += ["scrolls sideways"] if await overflows(sized_page) else []
        found += await sized_page.eval_on_selector_all("[data-id]", _UNLINKED)
        if found:
            wrong[path] = found

    assert not wrong, "\n".join(f"{path}\n  " + "\n  ".join(found) for path, found in wrong.items())


async def _pages(person: Operator) -> list[str]:
    """Returns the pages of the navigation, and for each of their tables the page of its first row."""
    page = person.page
    listed: list[str] = await page.eval_on_selector_all("#navigation a", _ADDRESSES)
    found = dict.fromkeys(listed)
    for address in listed:
        await page.goto(address)
        rows: list[str] = await page.eval_on_selector_all("main .row-link", _ADDRESSES)
        found.update(dict.fromkeys(rows[:1]))
    return list(found)
