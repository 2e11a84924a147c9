"""The pages while the analytics store hangs: a frame at once, and a message in the place of figures."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.async_api import Page, expect

from tests.browser.actions import sign_in
from tests.browser.problems import Problems
from tests.live.conftest import StartService
from tests.live.operators.crawl import navigation, path_of
from tests.live.playground import make_account
from tests.live.prompts import Team
from tests.live.service import LiveService

_PAGES_OF_THE_STORE = ("Requests", "Sessions", "Errors", "Usage and cost")


@contextmanager
def hanging(service: LiveService) -> Iterator[None]:
    """Stops the analytics engine without an end: connections are taken, and nothing is answered."""
    engine = service.pid("engine")
    assert engine is not None
    os.kill(engine, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(engine, signal.SIGCONT)


async def test_pages__store_hangs__frame_and_message(
    page: Page, start_service: StartService, problems: Problems
) -> None:
    service = start_service()
    team = Team(service, "store away")
    account = make_account(team, "administrator")
    await sign_in(page, service.base_url, account.name, account.password)
    addresses = await navigation(page)
    lists = page.get_by_role("navigation", name="Pages")
    of_the_store = [await lists.get_by_role("link", name=name).get_attribute("href") for name in _PAGES_OF_THE_STORE]

    with hanging(service):
        for address in addresses:
            answer = await page.goto(address)
            assert answer is not None and answer.status == 200, path_of(address)
            await expect(page.get_by_role("heading", level=1)).to_be_visible()
        for shown in of_the_store:
            await page.goto(f"{service.base_url}{shown}")
            await expect(page.get_by_role("alert").first).to_contain_text("Try again")
    await page.goto(f"{service.base_url}{of_the_store[0]}")
    # The store is asked for signs of life now and then; until it gives one, its questions are refused.
    while await page.get_by_role("alert").count():
        await page.reload()
