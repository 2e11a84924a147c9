from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from playwright.async_api import Page, expect

from tests.browser.pictures.shop import Shop, decided_rollout
from tests.live.playground import PlaygroundPage, Stage
from tests.waiting import wait_until

_REQUESTS = "/admin/analytics/requests/"
_MAX_LATE_MS = 60_000


async def wait_for_panels(page: Page) -> None:
    await expect(page.locator(".late")).to_have_count(0, timeout=_MAX_LATE_MS)


async def home(page: Page, shop: Shop) -> None:
    await page.goto(shop.address("/admin/", "&range=30d"))


async def connect(page: Page, shop: Shop) -> None:
    await page.goto(shop.address("/admin/connect/"))
    await page.get_by_text("Python", exact=True).click()


async def requests(page: Page, shop: Shop) -> None:
    await page.goto(shop.address(_REQUESTS, "&range=24h"))


async def peek(page: Page, shop: Shop) -> None:
    await page.goto(shop.address(_REQUESTS, "&range=24h&outcome=error"))
    await page.locator(".lines tr", has_text="provider_").first.locator(".row-link").click()
    await page.get_by_role("link", name="Open the request").wait_for()


async def session(page: Page, shop: Shop) -> None:
    identifier = quote(shop.traced_session(), safe="")
    await page.goto(shop.address(f"/admin/analytics/sessions/{shop.team.project_id}/{identifier}"))


async def usage(page: Page, shop: Shop) -> None:
    await page.goto(shop.address("/admin/usage/", "&range=30d"))


async def models(page: Page, shop: Shop) -> None:
    await page.goto(shop.address("/admin/models/", "&range=30d"))


async def dashboard(page: Page, shop: Shop) -> None:
    await page.goto(shop.address(f"/admin/dashboards/{shop.dashboard_id}/", "&range=30d"))


async def alerts(page: Page, shop: Shop) -> None:
    await asyncio.to_thread(wait_until, shop.has_alert, what="an alert that fires")
    await page.goto(shop.address("/admin/alerts/", "&range=7d"))


async def teams(page: Page, shop: Shop) -> None:
    await page.goto(shop.address("/admin/teams/"))


async def rollout(page: Page, shop: Shop) -> None:
    decided = await asyncio.to_thread(decided_rollout, shop.team)
    await page.goto(shop.address(f"/admin/rollouts/rollout/{decided.id}/change/"))


async def playground(page: Page, shop: Shop) -> None:
    opened = PlaygroundPage(page, Stage(shop.team, None, shop.user))  # type: ignore[arg-type]  # the sandbox answers
    await opened.open()
    await opened.ask("Where is order 4711?", "sandbox/echo", "sandbox/reasoning")
    await opened.run()
    await opened.done("2 of 2 answered")


async def prompt_versions(page: Page, shop: Shop) -> None:
    await page.goto(shop.address(f"/admin/prompts/{shop.prompt.config_id}/", "&version=2&against=1"))


async def discussion(page: Page, shop: Shop) -> None:
    await page.goto(shop.address(_REQUESTS, "&range=24h&outcome=error"))
    await page.locator(".lines tr", has_text="provider_").first.locator(".row-link").click()
    await page.get_by_role("link", name="Open the request").click()
    panel = page.get_by_role("region", name="Comments")
    await panel.get_by_label("Member").select_option(shop.colleague.name)
    await panel.get_by_role("button", name="Assign").click()
    await panel.get_by_label("Write a comment").fill(
        f"@{shop.colleague.name} the same shop again. Is its key over the limit?"
    )
    await panel.get_by_role("button", name="Add comment").click()
    await wait_for_panels(page)
    await panel.evaluate("panel => panel.scrollIntoView({ block: 'end' })")


async def second_factor(page: Page, shop: Shop) -> None:
    await page.goto(shop.address("/admin/second-factor/"))


PICTURES: dict[str, Callable[[Page, Shop], Awaitable[None]]] = {
    "home": home,
    "connect": connect,
    "requests": requests,
    "request-beside": peek,
    "session": session,
    "usage": usage,
    "models": models,
    "dashboard": dashboard,
    "alerts": alerts,
    "teams": teams,
    "playground": playground,
    "prompt-versions": prompt_versions,
    "second-factor": second_factor,
    "discussion": discussion,
    "rollout": rollout,
}
# Of these there is also a picture of a narrow window.
NARROW = frozenset({"home", "requests", "rollout", "dashboard"})
