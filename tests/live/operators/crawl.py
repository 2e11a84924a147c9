from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from django.urls import Resolver404, resolve
from playwright.async_api import Page, Response

_ADDRESSES = "links => links.map(link => link.href)"
# Links to these pages are not followed: they sign in or out, answer a file or a fragment, or lead elsewhere.
NOT_FOLLOWED = {
    "login",
    "logout",
    "jsi18n",
    "view_on_site",
    "usage_export",
    "analytics_requests_export",
    "dataset_export",
    "analytics_requests_image",
    "review_image",
    "agent_panel_beside",
}
_ALIKE = ("history", "delete")


async def navigation(page: Page) -> list[str]:
    found: list[str] = await page.eval_on_selector_all("#navigation a", _ADDRESSES)
    return found


async def one_of_each_kind(page: Page, *addresses: str) -> AsyncIterator[tuple[str, Response]]:
    """Yields each page that links reach, with its answer, while `page` shows it.

    Visits all `addresses` first; of each other kind the first page that is linked.
    """
    kinds: set[str] = set()
    waiting = list(addresses)
    while waiting:
        address = waiting.pop(0)
        answer = await page.goto(address)
        assert answer is not None, address
        kinds.add(kind_of(page.url))
        yield page.url, answer
        for linked in await page.eval_on_selector_all("a[href]", _ADDRESSES):
            kind = kind_of(linked)
            if kind and kind not in kinds | NOT_FOLLOWED:
                kinds.add(kind)
                waiting.append(linked)


def kind_of(address: str) -> str:
    try:
        found = resolve(path_of(address))
    except Resolver404:
        return ""
    return kind_of_name(found.url_name or "") if found.app_name == "admin" else ""


def kind_of_name(url_name: str) -> str:
    """Django's pages of histories and deletions count as one kind."""
    return next((kind for kind in _ALIKE if url_name.endswith(f"_{kind}")), url_name)


def path_of(address: str) -> str:
    return urlsplit(address).path
