from __future__ import annotations

from collections.abc import Iterable

import pytest_asyncio
from django.template.loader import render_to_string
from playwright.async_api import Page, Route, expect

from config.settings.base import BASE_DIR
from core.ui.panels import Panel

_SCRIPT = (BASE_DIR / "core" / "static" / "core" / "ui" / "panels.js").read_text(encoding="utf-8")
_ADDRESS = "http://localhost/page"
_PAGE = """<title>Page</title><main><section id="panel-a"{refresh}><div data-panel="a">{content}</div></section></main>
<script type="module">import {{ watchPanels }} from "/panels.js"; watchPanels(); document.title = "Ready";</script>"""
_CAME = "<p>42 requests</p>"
_CONTEXT = {"panel": Panel("a", "A", "ui/empty.html", dict), "address": "/page?"}
LATE = render_to_string("ui/late.html", _CONTEXT)
AWAY = render_to_string("ui/problem.html", {**_CONTEXT, "message": "The store does not answer.", "may_pass": True})
REFUSED = render_to_string("ui/problem.html", {**_CONTEXT, "message": "Not allowed.", "may_pass": False})


class Server:
    """Answers each request with the next of `answers`, and repeats the last."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.asked = 0
        self.answers: list[str] = []

    async def open(self, first: str, answers: Iterable[str], refresh: str = "") -> None:
        self.answers = list(answers)
        await self.page.clock.install(time=0)
        await self.page.clock.pause_at(1000)
        await self.page.route("**/*", lambda route: self._answer(route, _PAGE.format(content=first, refresh=refresh)))
        await self.page.goto(_ADDRESS)
        await expect(self.page).to_have_title("Ready")

    async def after(self, seconds: float, asked: int) -> None:
        """Moves the clock; returns when the panel was asked for `asked` times in all and is not loading."""
        await self.page.clock.run_for(round(seconds * 1000))
        await expect(self.page.locator("[aria-busy]")).to_have_count(0)
        assert self.asked == asked

    async def _answer(self, route: Route, page: str) -> None:
        if "panel=a" in route.request.url:
            self.asked += 1
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            await route.fulfill(body=answer, content_type="text/html")
        elif route.request.url.endswith(".js"):
            await route.fulfill(body=_SCRIPT, content_type="text/javascript")
        else:
            await route.fulfill(body=page, content_type="text/html")


@pytest_asyncio.fixture(loop_scope="session")
async def server(page: Page) -> Server:
    return Server(page)


async def test_late_panel__comes_with_a_later_try__is_shown_without_a_click(page: Page, server: Server) -> None:
    await server.open(LATE, [LATE, _CAME])
    assert await page.get_by_role("alert").count() == 0

    await server.after(0.9, asked=0)
    await server.after(0.2, asked=1)
    await expect(page.get_by_text("Still loading.")).to_be_visible()
    await server.after(2.1, asked=2)

    await expect(page.get_by_text("42 requests")).to_be_visible()
    await server.after(60, asked=2)


async def test_late_panel__never_comes__is_red_after_four_tries(page: Page, server: Server) -> None:
    await server.open(LATE, [LATE])

    for asked, pause in enumerate((1, 2, 3), start=1):
        await server.after(pause + 0.1, asked=asked)
        assert await page.get_by_role("alert").count() == 0
    await server.after(5.1, asked=4)
    await expect(page.get_by_role("alert")).to_contain_text("Not available now")
    await server.after(60, asked=4)

    server.answers = [_CAME]
    await page.get_by_role("link", name="Try again").click()
    await expect(page.get_by_text("42 requests")).to_be_visible()


async def test_panel__its_store_was_away_and_is_back__comes_by_itself(page: Page, server: Server) -> None:
    await server.open(AWAY, [_CAME])
    await expect(page.get_by_role("alert")).to_contain_text("The store does not answer.")

    await server.after(1.1, asked=1)

    await expect(page.get_by_text("42 requests")).to_be_visible()


async def test_panel__refused__is_not_tried_again(page: Page, server: Server) -> None:
    await server.open(REFUSED, [_CAME])

    await server.after(60, asked=0)

    await expect(page.get_by_role("alert")).to_contain_text("Not allowed.")


async def test_figures__their_refresh_is_late__stay_until_the_tries_are_used_up(page: Page, server: Server) -> None:
    await server.open(_CAME, [LATE], refresh=' data-refresh="60"')

    await server.after(60.1, asked=1)
    for asked, pause in enumerate((1, 2, 3), start=2):
        await server.after(pause + 0.1, asked=asked)
        await expect(page.get_by_text("42 requests")).to_be_visible()
    await server.after(5.1, asked=5)

    await expect(page.get_by_role("alert")).to_contain_text("Not available now")
