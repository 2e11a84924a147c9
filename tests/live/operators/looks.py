from __future__ import annotations

import re

from playwright.async_api import Page, Response, ViewportSize

from gateway.project_settings.declaration import parts
from gateway.project_settings.settings import ProjectSettings
from tests.browser.actions import unlabelled, wider_than_window
from tests.browser.axe import COLOR_RULES, violations
from tests.night import NIGHT

WIDE = ViewportSize(width=1440, height=900)
_NARROW = ViewportSize(width=400, height=900)
_UNLINKED = "found => found.filter(element => !element.getAttribute('href')).map(element => element.outerHTML)"
# The text of the main part as it was sent, which a page without scripts has.
_SENT_TEXT = """
(html) => {
  const main = new DOMParser().parseFromString(html, "text/html").querySelector("main");
  main.querySelectorAll("template, script").forEach((element) => element.remove());
  return main.textContent.replace(/\\s+/g, " ");
}
"""
# What people read at once: no fold that is closed, and no text that is meant for a program.
_READ_TEXT = """
() => {
  const main = document.querySelector("main").cloneNode(true);
  const hidden = "details:not([open]) > :not(summary), template, script, code, pre, textarea, option";
  main.querySelectorAll(hidden).forEach((element) => element.remove());
  return main.textContent.replace(/\\s+/g, " ");
}
"""
# The words of those who built the pages: settings by their identifiers, actors as rows keep them, sources of prices,
# roles as the database has them, and the terms of the statistics.
_SETTINGS = "|".join(re.escape(one.path) for one in parts(ProjectSettings) if "_" in one.path or "." in one.path)
_FORBIDDEN = re.compile(
    rf"\b(?:{_SETTINGS})\b|\b(?:key:\d+|user:\w+|sync:\d+|catalog_[ab]|reader_without_content|[Ee]vidence)\b"
)
_MIN_CHARACTERS = 40
# One row of the header at every width.
_HEADER_PX = 48
# What reaches below the agent's panel and cannot be scrolled into sight, and tables that lose a column there. Tables
# whose columns the reader chooses, as of the request log, and Django's own lists scroll in their cards.
_BELOW_THE_AGENT = """
() => {
  const edge = document.querySelector("#agent-dialog").getBoundingClientRect().left;
  const scrolls = (element) => element && element.tagName !== "MAIN"
    && (getComputedStyle(element).overflowX !== "visible" || scrolls(element.parentElement));
  const below = [...document.querySelectorAll("main *")]
    .filter((element) => element.checkVisibility() && element.getBoundingClientRect().right > edge)
    .filter((element) => !scrolls(element.parentElement));
  const cut = [...document.querySelectorAll(":not(.log) > .scroll:not(.table-menu + .scroll, :has(#result_list))")]
    .filter((table) => table.checkVisibility() && table.scrollWidth > table.clientWidth + 1);
  return [...below, ...cut].map((element) => element.outerHTML.slice(0, 200));
}
"""


async def faults_of(page: Page, *, whole: bool = True) -> list[str]:
    """Restores the page's colour scheme and width.

    Unless `whole`, for a page much like another, axe-core looks only at the narrow window in light colours.
    """
    found = [*await unlabelled(page), *await page.eval_on_selector_all("[data-id]", _UNLINKED)]
    for size in (WIDE, _NARROW):
        width = size["width"]
        await page.set_viewport_size(size)
        found += [f"{width}: scrolls sideways: {element}" for element in await wider_than_window(page)]
        if size is _NARROW:
            found += [f"a header of {height} px" for height in await _header_heights(page) if height > _HEADER_PX]
        if whole or size is _NARROW:
            found += [f"{width}: {text}" for text in await violations(page)]
        # Colours depend little on the width: by day the dark ones are looked at in one.
        if whole and (NIGHT or size is _NARROW):
            await page.emulate_media(color_scheme="dark")
            found += [f"{width} dark: {text}" for text in await violations(page, *COLOR_RULES)]
            await page.emulate_media(color_scheme="light")
    await page.set_viewport_size(WIDE)
    return found


async def words_of_the_code(page: Page) -> list[str]:
    """Returns words that only people who know the code understand, among what the page shows at once."""
    text: str = await page.evaluate(_READ_TEXT)
    return [f"a word of the code: {word}" for word in sorted(set(_FORBIDDEN.findall(text)))]


async def _header_heights(page: Page) -> list[int]:
    found: list[int] = await page.eval_on_selector_all(".frame-header", "all => all.map(one => one.offsetHeight)")
    return found


async def faults_beside_agent(page: Page) -> list[str]:
    button = page.locator("#agent-link")
    if not await button.count():
        return []
    await button.click()
    dialog = page.locator("#agent-dialog")
    await dialog.wait_for()
    hidden: list[str] = await page.evaluate(_BELOW_THE_AGENT)
    await dialog.get_by_role("button", name="Close", exact=True).click()
    return [f"beside the agent: {element}" for element in hidden]


async def faults_of_answer(page: Page, answer: Response) -> list[str]:
    found = []
    policy = answer.headers["content-security-policy"]
    if "default-src 'none'" not in policy or "unsafe" in policy:
        found.append(f"policy: {policy}")
    text: str = await page.evaluate(_SENT_TEXT, await answer.text())
    # A page that only a script fills would have its heading and little more.
    if "Loading…" in text or len(text) < _MIN_CHARACTERS:
        found.append(f"says too little without scripts: {text}")
    return found
