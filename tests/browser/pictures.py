"""`make pictures` or `python -m tests.browser.pictures [NAME ...]`: takes the documents' pictures of a running product.

The command starts a service of its own, gives it the data of `manage.py generate_traffic` and `manage.py demo` and a
rollout whose target fails, waits until that rollout has decided, and writes `docs/pictures/<name>.png`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import requests as http
from playwright.async_api import Page, ViewportSize, async_playwright

from tests.browser.actions import sign_in
from tests.browser.chromium import chromium_program
from tests.browser.fixtures import OPTIONS
from tests.live.playground import Account, PlaygroundPage, Stage, make_account
from tests.live.prompts import SHORTENED, Prompt, Rollout, Team
from tests.live.service import ROOT, LiveService
from tests.waiting import wait_until

FOLDER = ROOT / "docs" / "pictures"
_SIZE = ViewportSize(width=1440, height=900)
_HISTORY, _DECISION_SECONDS, _MAX_REQUESTS = 60_000, 600, 8
_VARIABLES = [{"name": "goods", "type": "string", "required": False}]
_FIRST = "You help the customers of the {{ goods }} shop.\nAnswer in one paragraph.\nName the number of the order."
_SECOND = _FIRST.replace("one paragraph", "three sentences") + "\nBe kind."
_STAGE = {"weight": 50, "min_duration_minutes": 1, "min_requests": 50}


@dataclass(frozen=True, slots=True)
class Shop:
    """A project with something to see, and a person who may see all of it."""

    team: Team
    prompt: Prompt
    rollout: Rollout | None
    user: Account

    def address(self, path: str, query: str = "") -> str:
        return f"{self.team.service.base_url}{path}?project={self.team.project_id}{query}"

    def traced_session(self) -> str:
        """Returns the id of the session with most spans, of those with a few requests today."""
        found = self._get("sessions", limit="120")["results"]
        sessions: list[str] = [row["session_id"] for row in found if 2 <= row["request_count"] <= _MAX_REQUESTS]
        return max(sessions, key=self._spans)

    def _spans(self, session_id: str) -> int:
        nodes = self._get(f"sessions/{quote(session_id, safe='')}/timeline")["nodes"]
        return sum(1 for node in nodes if node["kind"] == "span")

    def _get(self, path: str, **parameters: str) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.team.api_key}", "X-Project-Id": self.team.project_id}
        url = f"{self.team.service.base_url}/api/llm/{path}"
        answer = http.get(url, headers=headers, params=parameters, timeout=30)
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body


async def home(page: Page, shop: Shop) -> None:
    await page.goto(shop.address("/admin/", "&range=30d"))


async def connect(page: Page, shop: Shop) -> None:
    """Shows what to paste into a program in Python."""
    await page.goto(shop.address("/admin/connect/"))
    await page.get_by_text("Python", exact=True).click()


async def requests(page: Page, shop: Shop) -> None:
    await page.goto(shop.address("/admin/analytics/requests/", "&range=24h"))


async def session(page: Page, shop: Shop) -> None:
    """Shows the conversation of few requests that has most spans, with its waterfall."""
    identifier = quote(shop.traced_session(), safe="")
    await page.goto(shop.address(f"/admin/analytics/sessions/{shop.team.project_id}/{identifier}"))


async def usage(page: Page, shop: Shop) -> None:
    await page.goto(shop.address("/admin/usage/", "&range=30d"))


async def rollout(page: Page, shop: Shop) -> None:
    """Shows the rollout whose target failed, after it was rolled back by itself."""
    assert shop.rollout is not None
    await page.goto(shop.address(f"/admin/rollouts/rollout/{shop.rollout.id}/change/"))


async def playground(page: Page, shop: Shop) -> None:
    """Shows one question to two models of the sandbox, answered side by side."""
    opened = PlaygroundPage(page, Stage(shop.team, None, shop.user))  # type: ignore[arg-type]  # the sandbox answers
    await opened.open()
    await opened.ask("Where is order 4711?", "sandbox/echo", "sandbox/reasoning")
    await opened.run()
    await opened.done("2 of 2 answered")


async def prompt_versions(page: Page, shop: Shop) -> None:
    """Shows two versions of a prompt side by side."""
    await page.goto(shop.address(f"/admin/prompts/{shop.prompt.config_id}/", "&version=2&against=1"))


PICTURES: dict[str, Callable[[Page, Shop], Awaitable[None]]] = {
    "home": home,
    "connect": connect,
    "requests": requests,
    "session": session,
    "usage": usage,
    "rollout": rollout,
    "playground": playground,
    "prompt-versions": prompt_versions,
}


def open_shop(service: LiveService, names: list[str]) -> Shop:
    team = Team(service, "Corner shop")
    team.command("generate_traffic", "--project", team.project_id, "--requests", str(_HISTORY), "--content-days", "2")
    access = ("--project-id", team.project_id, "--api-key", team.api_key)
    team.command("demo", "--base-url", service.base_url, *access, "--limit", "40")
    content = {"model": "sandbox/echo", "variables": _VARIABLES}
    prompt = team.prompt("support", *({**content, "system_prompt": text} for text in (_FIRST, _SECOND)))
    decided = decided_rollout(team) if "rollout" in names else None
    return Shop(team, prompt, decided, make_account(team, "administrator"))


def decided_rollout(team: Team) -> Rollout:
    """Returns a rollout of a version that fails half of its requests, after it was rolled back without anybody."""
    content = {"system_prompt": _FIRST, "variables": _VARIABLES}
    prompt = team.prompt("orders", {**content, "model": "sandbox/echo"}, {**content, "model": "sandbox/half"})
    rollout = prompt.rollout(mode="auto", stages=[_STAGE, {**_STAGE, "weight": 100}])

    def is_decided() -> bool:
        prompt.answers(f"Where is order {order}?" for order in range(40))
        return bool(rollout.shown()["status"] == "rolled_back")

    wait_until(is_decided, seconds=_DECISION_SECONDS, what="the rollout to be rolled back")
    return rollout


async def take(service: LiveService, names: list[str]) -> None:
    shop, program = open_shop(service, names), chromium_program()
    FOLDER.mkdir(exist_ok=True)
    async with async_playwright() as playwright:
        environment: dict[str, str | float | bool] = {**os.environ, **program.environment}
        browser = await playwright.chromium.launch(executable_path=program.path, args=OPTIONS, env=environment)
        page = await browser.new_page(viewport=_SIZE, color_scheme="light", locale="en-GB", timezone_id="UTC")
        await sign_in(page, service.base_url, shop.user.name, shop.user.password)
        for name in names:
            await PICTURES[name](page, shop)
            await page.screenshot(path=FOLDER / f"{name}.png")
        await browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(PICTURES)}; all by default")
    names = parser.parse_args().names or list(PICTURES)
    with tempfile.TemporaryDirectory() as folder:
        service = LiveService(Path(folder) / "var", SHORTENED)
        try:
            asyncio.run(take(service, names))
        finally:
            service.stop_at_once()


if __name__ == "__main__":
    main()
