from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from tests.browser.chromium import chromium_program
from tests.browser.problems import Problems
from tests.waiting import TIMEOUT_SECONDS

_TIMEOUT_MS = TIMEOUT_SECONDS * 1000
# The pages are the product's own, and a container lacks both the rights of the sandbox and a large /dev/shm.
OPTIONS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The browser belongs to the event loop that it was started on, which is the session's.
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    program = chromium_program()
    expect.set_options(timeout=_TIMEOUT_MS)
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(
            executable_path=program.path, args=OPTIONS, env={**os.environ, **program.environment}
        )
        yield running
        await running.close()


@pytest_asyncio.fixture(loop_scope="session")
async def context(chromium: Browser) -> AsyncIterator[BrowserContext]:
    made = await chromium.new_context()
    made.set_default_timeout(_TIMEOUT_MS)
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="session")
async def problems(context: BrowserContext) -> AsyncIterator[Problems]:
    found = Problems(context)
    yield found
    await found.settle()
    found.check()


@pytest_asyncio.fixture(loop_scope="session")
async def page(context: BrowserContext, problems: Problems) -> Page:
    return await context.new_page()
