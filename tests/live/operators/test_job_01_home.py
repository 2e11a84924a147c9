"""Job 1: how is it doing? Home answers without a click."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import parse_qs, urlsplit

from playwright.async_api import Page, expect

from core.ui import formats
from tests.live.operators.operator import Operator


def _period(operator: Operator) -> dict[str, str]:
    latest = operator.api("requests", {"limit": 1})["results"][0]["created_at"]
    day = datetime.fromisoformat(latest).date().isoformat()
    return {"start": f"{day[:8]}01", "end": latest}


async def test_home__opened__says_how_it_is_doing(page: Page, operator: Operator) -> None:
    period = _period(operator)
    same = {"start_date": period["start"], "end_date": period["end"]}
    totals = operator.api("metrics/totals", same)
    # Without a range the problems are those of the last 24 hours, with rollbacks of other tests after the period.
    problems = operator.api("problems", same)["problems"]

    await operator.open_whole("/admin/", range="custom", **period)

    for label, figure in (
        ("Requests", formats.number(totals["request_count"])),
        ("Errors", formats.share(totals["error_rate"])),
        ("Latency, p95", formats.duration(totals["p95_latency_ms"])),
        ("Cost", formats.money(totals["total_cost_usd"])),
    ):
        # A list on the page may have the same figure in a sentence about errors.
        named = operator.page.get_by_text(label, exact=True)
        tile = operator.main.get_by_role("listitem").filter(has=named).filter(has_text=figure)
        await expect(tile).to_have_count(1)
    for problem in problems:
        await expect(operator.main.get_by_role("list", name="What is wrong now")).to_contain_text(problem["message"])
    for title in ("Requests and errors", "Latency", "Cost", "Time to the first token"):
        await expect(operator.main.get_by_role("img", name=title).first).to_be_visible()
    for name in ("Providers, last five minutes", "Error codes", "Top models", "Top users", "Running rollouts"):
        await expect(operator.main.get_by_role("heading", name=name)).to_be_visible()
    assert operator.clicks == 0


async def test_plot_of_home__keys_and_brush__values_and_the_requests_of_that_time(
    page: Page, operator: Operator
) -> None:
    await operator.open_whole("/admin/", range="24h")
    slider = operator.main.get_by_role("slider", name="Values of Requests and errors per hour")
    figure = operator.main.get_by_role("figure", name="Requests and errors per hour")

    await slider.focus()
    await slider.press("Home")
    first = await slider.get_attribute("aria-valuetext")
    await slider.press("ArrowRight")
    assert await slider.get_attribute("aria-valuetext") != first
    assert first is not None and "answered" in first and "errors" in first
    await expect(figure.get_by_role("status")).to_contain_text("answered")

    box = await slider.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    await page.mouse.move(box["x"] + box["width"] * 0.25, middle)
    await page.mouse.down()
    await page.mouse.move(box["x"] + box["width"] * 0.5, middle)
    await page.mouse.up()
    await page.wait_for_url("**/analytics/requests/**")
    query = parse_qs(urlsplit(page.url).query)
    start, end = (datetime.fromisoformat(query[name][0]) for name in ("start", "end"))
    assert 5.5 <= (end - start).total_seconds() / 3600 <= 6.5
