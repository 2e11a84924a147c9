"""A person at the operators' pages, who finds things by role and label and counts the clicks that a job takes.

A click is a press of the mouse, or of Enter in a form; typing and reading are none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import requests
from playwright.async_api import Locator, Page, expect

from tests.live.prompts import Team

# The times that a page is opened until all of its panels came, and the time for the tries of one that is late.
_ATTEMPTS, _TRIES_MS = 5, 60_000


class Operator:
    """`clicks` counts from the last `open` on."""

    def __init__(self, page: Page, team: Team) -> None:
        self.page = page
        self.team = team
        self.clicks = 0

    @property
    def main(self) -> Locator:
        return self.page.get_by_role("main")

    async def open(self, path: str, **query: Any) -> None:
        parameters = urlencode({"project": self.team.project_id, **query})
        await self.page.goto(f"{self.team.service.base_url}{path}?{parameters}")
        self.clicks = 0

    async def open_whole(self, path: str, **query: Any) -> None:
        """Repeats `open` until no panel gave up: many tests share two cores."""
        for _ in range(_ATTEMPTS):
            await self.open(path, **query)
            # A late panel asks again by itself; it is red when it gave up.
            await expect(self.main.get_by_text("Still loading.")).to_have_count(0, timeout=_TRIES_MS)
            if not await self.main.get_by_text("Not available now").count():
                return
        raise AssertionError(f"panels of {path} gave up {_ATTEMPTS} times")

    async def click(self, found: Locator) -> None:
        self.clicks += 1
        await found.click()

    async def choose(self, field: Locator, option: str) -> None:
        self.clicks += 1
        await field.select_option(label=option)

    async def enter(self, field: Locator) -> None:
        self.clicks += 1
        await field.press("Enter")

    async def navigate(self, label: str) -> None:
        """Takes the palette to what is folded."""
        link = self.page.get_by_role("navigation", name="Pages").get_by_role("link", name=label, exact=True)
        if not await link.is_visible():
            # The scripts run when all panels have come.
            await self.page.wait_for_load_state()
            await self.page.keyboard.press("Control+k")
            await self.page.keyboard.type(label)
            link = self.page.get_by_role("group", name="Found").get_by_role("link", name=label, exact=True)
        await self.click(link)

    def api(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.team.api_key}", "X-Project-Id": self.team.project_id}
        url = f"{self.team.service.base_url}/api/llm/{path}"
        response = requests.get(url, headers=headers, params=dict(query or {}), timeout=30)
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found
