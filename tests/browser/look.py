"""Takes pictures of pages to look at: `python -m tests.browser.look PATH ... --user NAME --password PASSWORD`.

Each page is taken at 1440 and at 400 px, light and dark, into `--out` (default `/tmp/look`). What the browser reports
as wrong, sideways scrolling and fields without a label are printed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
from pathlib import Path

from playwright.async_api import Browser, ViewportSize, async_playwright

from tests.browser.actions import overflows, sign_in, unlabelled
from tests.browser.chromium import chromium_program
from tests.browser.fixtures import OPTIONS
from tests.browser.problems import Problems

_WIDTHS = (1440, 400)


async def look(given: argparse.Namespace) -> None:
    program = chromium_program()
    given.out.mkdir(parents=True, exist_ok=True)
    async with async_playwright() as playwright:
        environment: dict[str, str | float | bool] = {**os.environ, **program.environment}
        browser = await playwright.chromium.launch(executable_path=program.path, args=OPTIONS, env=environment)
        for width in _WIDTHS:
            for scheme in ("light", "dark"):
                await _pictures(browser, given, width, scheme)
        await browser.close()


async def _pictures(browser: Browser, given: argparse.Namespace, width: int, scheme: str) -> None:
    context = await browser.new_context(
        viewport=ViewportSize(width=width, height=900),
        color_scheme="dark" if scheme == "dark" else "light",
        locale="en-GB",
        timezone_id="Europe/Berlin",
    )
    problems = Problems(context)
    page = await context.new_page()
    await sign_in(page, given.base, given.user, given.password)
    for path in given.paths:
        await page.goto(given.base + path)
        name = re.sub(r"[^a-z0-9]+", "-", path.partition("?")[0].lower()).strip("-") or "home"
        await page.screenshot(path=given.out / f"{name}-{width}-{scheme}.png", full_page=True)
        found = [*(["scrolls sideways"] if await overflows(page) else []), *await unlabelled(page)]
        sys.stdout.write("\n  ".join([f"{name}-{width}-{scheme}", *found]) + "\n")
    await problems.settle()
    try:
        problems.check()
    except AssertionError as error:
        sys.stdout.write(f"{error}\n")
    await context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", metavar="PATH")
    parser.add_argument("--base", default="http://127.0.0.1:8000")
    parser.add_argument("--user", default="operator")
    parser.add_argument("--password", default=os.environ.get("PASSWORD", ""))
    parser.add_argument("--out", type=Path, default=Path("/tmp/look"))
    asyncio.run(look(parser.parse_args()))


if __name__ == "__main__":
    main()
