"""The frame of every page: one scale, a header of one row, the navigation in sight, the palette, the range."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, expect

from tests.browser.actions import overflows
from tests.live.operators.looks import WIDE
from tests.live.operators.operator import Operator

_HEADER_PX = 48
_MAX_ENTRIES = 16
_IS_ON_TOP = """
(element) => {
  const { left, top, width, height } = element.getBoundingClientRect();
  return element.contains(document.elementFromPoint(left + width / 2, top + height / 2));
}
"""
_TYPE = """
() => {
  const shown = [...document.querySelectorAll("body *")].filter((element) => element.checkVisibility()
    && [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
  const styles = shown.map((element) => getComputedStyle(element));
  return ["fontSize", "fontWeight"].map((name) => [...new Set(styles.map((style) => style[name]))]);
}
"""


async def _height(header: Locator) -> int:
    found: int = await header.evaluate("element => element.offsetHeight")
    return found


@pytest.mark.parametrize("width", [360, 390, 800, 1024, 1099, 1440])
async def test_header__width__one_row_below_which_peek_and_agent_are_closed(operator: Operator, width: int) -> None:
    page = operator.page
    await page.set_viewport_size({"width": width, "height": 900})
    await operator.open_whole("/admin/analytics/requests/")
    assert await _height(page.get_by_role("banner")) == _HEADER_PX

    await page.locator(".lines .row-link").first.press("Enter")
    beside = page.get_by_role("complementary", name="The chosen request")
    close = beside.get_by_role("link", name="Close")
    assert await close.evaluate(_IS_ON_TOP) and not await overflows(page)
    await close.click()
    await expect(beside).to_be_hidden()

    await page.get_by_role("link", name="Ask the agent").click()
    agent = page.get_by_role("dialog", name="Ask the agent")
    await agent.get_by_role("button", name="Close").click()
    await expect(agent).to_be_hidden()


async def test_pages__in_a_window_of_900_px__one_scale_and_the_navigation_in_sight(operator: Operator) -> None:
    page = operator.page
    await page.set_viewport_size(WIDE)
    for path in ("/admin/", "/admin/analytics/requests/", "/admin/usage/", "/admin/alerts/channels/"):
        await operator.open_whole(path)
        sizes, weights = await page.evaluate(_TYPE)
        assert set(sizes) <= {"12px", "14px", "16px", "22px"} and set(weights) <= {"400", "560"}, path
        entries = page.get_by_role("navigation", name="Pages", exact=True).get_by_role("link")
        shown = [one for one in await entries.all() if await one.is_visible()]
        # The name of the product leads to Home, and on a page of a folded group the group is open.
        if "alerts" not in path:
            assert len(shown) - 1 <= _MAX_ENTRIES, path
            boxes = [await one.bounding_box() for one in shown]
            assert all(box is not None and box["y"] + box["height"] <= WIDE["height"] for box in boxes), path
        primary = page.locator(".primary:visible")
        assert await primary.count() <= 1, path


async def test_palette__part_of_a_name__leads_by_keys_to_the_page(operator: Operator) -> None:
    page = operator.page
    await page.keyboard.press("Control+k")
    await page.keyboard.type("guardr")
    found = page.get_by_role("group", name="Found")
    await expect(found.get_by_role("link", name="Guardrails", exact=True)).to_be_visible()
    await expect(found.get_by_role("link", name="Providers")).to_have_count(0)

    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")

    await expect(page.get_by_role("heading", name="Guardrails", level=1)).to_be_visible()


async def test_range__from_and_to__in_the_readers_zone_and_in_the_address(operator: Operator) -> None:
    page = operator.page
    await operator.open("/admin/analytics/requests/", user_id="ann", tz="Europe/Berlin")
    button = page.get_by_text("Last 24 hours", exact=True).first
    await button.click()
    await page.get_by_label("From").fill("2026-07-01T14:00")
    await page.get_by_label("To", exact=True).fill("2026-07-01T15:00")
    await page.get_by_role("button", name="Apply").click()

    await expect(page).to_have_url(re.compile("start=2026-07-01T12%3A00%3A00Z&end=2026-07-01T13%3A00%3A00Z"))
    await page.get_by_text("1 Jul 14:00 to 15:00").click()
    await page.get_by_role("button", name="Yesterday").click()
    await expect(page).to_have_url(re.compile("user_id=ann.*range=yesterday"))


async def test_choice__of_a_form__shows_its_own_fields_alone(operator: Operator) -> None:
    page = operator.page
    await operator.open("/admin/alerts/channels/")
    webhook, mail = page.get_by_label("Address of the webhook"), page.get_by_label("Addresses of e-mail")
    await expect(webhook).to_be_visible()
    await expect(mail).to_be_hidden()

    await page.get_by_label("Kind").select_option(label="E-mail")

    await expect(mail).to_be_visible()
    await expect(webhook).to_be_hidden()


async def test_table__heading_of_a_number__sorts_by_what_it_shows(operator: Operator) -> None:
    await operator.open_whole("/admin/usage/", range="7d")
    table = operator.main.get_by_role("region", name="Cost by model").get_by_role("table")
    heading = table.get_by_role("columnheader", name="Requests")

    await heading.get_by_role("button").click()

    await expect(heading).to_have_attribute("aria-sort", "descending")
    cells = await table.locator("td[data-label=Requests]").all_text_contents()
    counts = [int(cell.replace(",", "")) for cell in cells]
    assert len(counts) > 1 and counts == sorted(counts, reverse=True)


async def test_frame__folded_and_dark__stays_so_on_the_next_page(operator: Operator) -> None:
    page = operator.page
    await page.set_viewport_size(WIDE)
    await page.get_by_role("button", name="Fold the navigation").click()
    await page.get_by_role("banner").get_by_text("account").first.locator("..").click()
    await page.get_by_role("button", name="Light or dark").click()

    await operator.open("/admin/errors/")

    navigation = page.get_by_role("navigation", name="Pages", exact=True)
    box = await navigation.bounding_box()
    assert box is not None and box["width"] < 60
    await expect(page.locator("html")).to_have_attribute("data-scheme", "dark")
    await expect(navigation.get_by_role("link", name="Sessions", exact=True)).to_be_visible()
