"""`python -m tests.browser.pictures [NAME ...]`: takes the README's pictures of pages from a running product.

The command starts a service of its own, fills a project through the API, and writes `docs/pictures/<name>.png`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from playwright.async_api import Page, ViewportSize, async_playwright

from tests.browser.actions import sign_in
from tests.browser.chromium import chromium_program
from tests.browser.fixtures import OPTIONS
from tests.live.playground import Account, PlaygroundPage, Stage, make_account
from tests.live.prompts import Prompt, Team
from tests.live.service import ROOT, LiveService

FOLDER = ROOT / "docs" / "pictures"
_SIZE = ViewportSize(width=1280, height=800)
_FIRST = "You help the customers of {{ shop }}.\nAnswer in one paragraph.\nName the number of the order."
_SECOND = "You help the customers of {{ shop }}.\nAnswer in three sentences.\nName the number of the order.\nBe kind."


async def playground(page: Page, team: Team, prompt: Prompt, user: Account) -> None:
    """Shows one question to two models of the sandbox, answered side by side."""
    opened = PlaygroundPage(page, Stage(team, None, user))  # type: ignore[arg-type]  # the sandbox answers
    await opened.open()
    await opened.ask("Where is order 4711?", "sandbox/echo", "sandbox/reasoning")
    await opened.run()
    await opened.done("2 of 2 answered")


async def prompt_versions(page: Page, team: Team, prompt: Prompt, user: Account) -> None:
    """Shows two versions of a prompt side by side."""
    before, after = prompt.version_ids
    address = f"/admin/prompts/promptconfig/{prompt.config_id}/diff/?before={before}&after={after}"
    await page.goto(team.service.base_url + address)


PICTURES: dict[str, Callable[[Page, Team, Prompt, Account], Awaitable[None]]] = {
    "playground": playground,
    "prompt-versions": prompt_versions,
}


async def take(service: LiveService, names: list[str]) -> None:
    team = Team(service, "Corner shop")
    content = {"model": "sandbox/echo", "variables": [{"name": "shop", "type": "string", "required": False}]}
    prompt = team.prompt("support", *({**content, "system_prompt": text} for text in (_FIRST, _SECOND)))
    user, program = make_account(team, "administrator"), chromium_program()
    FOLDER.mkdir(exist_ok=True)
    async with async_playwright() as playwright:
        environment: dict[str, str | float | bool] = {**os.environ, **program.environment}
        browser = await playwright.chromium.launch(executable_path=program.path, args=OPTIONS, env=environment)
        page = await browser.new_page(viewport=_SIZE, color_scheme="light")
        await sign_in(page, service.base_url, user.name, user.password)
        for name in names:
            await PICTURES[name](page, team, prompt, user)
            await page.screenshot(path=FOLDER / f"{name}.png", full_page=True)
        await browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(PICTURES)}; all by default")
    names = parser.parse_args().names or list(PICTURES)
    with tempfile.TemporaryDirectory() as folder:
        service = LiveService(Path(folder) / "var")
        try:
            asyncio.run(take(service, names))
        finally:
            service.stop_at_once()


if __name__ == "__main__":
    main()
