"""The addresses of all pages that a person is offered: the navigation's, and the first row of each of their tables."""

from __future__ import annotations

from urllib.parse import urlsplit

from playwright.async_api import Page

_ADDRESSES = "links => links.map(link => link.href)"


async def navigation(page: Page) -> list[str]:
    """Returns the addresses of the navigation of the page that is shown."""
    found: list[str] = await page.eval_on_selector_all("#navigation a", _ADDRESSES)
    return found


async def every_page(page: Page) -> list[str]:
    """Returns the navigation's addresses, and for each of their tables the address of its first row."""
    listed = await navigation(page)
    found = dict.fromkeys(listed)
    for address in listed:
        await page.goto(address)
        rows: list[str] = await page.eval_on_selector_all("main .row-link", _ADDRESSES)
        found.update(dict.fromkeys(rows[:1]))
    return list(found)


def path_of(address: str) -> str:
    return urlsplit(address).path
