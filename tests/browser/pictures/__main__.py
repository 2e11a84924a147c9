from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from pathlib import Path

from playwright.async_api import Page, ViewportSize, async_playwright

from tests.browser import pictures
from tests.browser.actions import sign_in
from tests.browser.chromium import chromium_program
from tests.browser.fixtures import OPTIONS
from tests.browser.pictures.scenes import NARROW, PICTURES, wait_for_panels
from tests.browser.pictures.shop import Shop, open_shop
from tests.live.prompts import SHORTENED
from tests.live.service import ROOT, LiveService

FOLDER = ROOT / "docs" / "pictures"
_WIDE_SIZE, _NARROW_SIZE = ViewportSize(width=1440, height=900), ViewportSize(width=400, height=900)


async def take(shop: Shop, names: list[str]) -> None:
    program = chromium_program()
    FOLDER.mkdir(exist_ok=True)
    async with async_playwright() as playwright:
        environment: dict[str, str | float | bool] = {**os.environ, **program.environment}
        browser = await playwright.chromium.launch(executable_path=program.path, args=OPTIONS, env=environment)
        page = await browser.new_page(color_scheme="light", locale="en-GB", timezone_id="UTC")
        await sign_in(page, shop.team.service.base_url, shop.user.name, shop.user.password)
        for name in names:
            await page.set_viewport_size(_WIDE_SIZE)
            await PICTURES[name](page, shop)
            await wait_for_panels(page)
            await _keep(page, name)
            if name in NARROW:
                await page.set_viewport_size(_NARROW_SIZE)
                await _keep(page, f"{name}-narrow")
        await browser.close()


async def _keep(page: Page, name: str) -> None:
    await page.screenshot(path=FOLDER / f"{name}.png")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.browser.pictures", description=pictures.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(PICTURES)}; all by default")
    names = parser.parse_args().names or list(PICTURES)
    with tempfile.TemporaryDirectory() as folder:
        service = LiveService(Path(folder) / "var", SHORTENED)
        try:
            asyncio.run(take(open_shop(service), names))
        finally:
            service.stop_at_once()


if __name__ == "__main__":
    main()
