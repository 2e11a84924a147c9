"""Job 11: score requests by hand in a queue, with at most two clicks a score."""

from __future__ import annotations

import re

from playwright.async_api import expect

from tests.live.operators.operator import Operator

MAX_CLICKS_PER_SCORE = 2


async def test_job__score_by_hand__one_press_each_by_mouse_and_by_key(operator: Operator) -> None:
    page, main = operator.page, operator.main
    # Opened from Requests, the form has its filters.
    await operator.open("/admin/reviews/", range="7d", outcome="success")
    await page.get_by_label("Name").fill("Did it help?")
    await page.get_by_label("What is scored").fill("helpful")
    await page.get_by_label("How many").fill("5")
    await operator.click(page.get_by_role("button", name="Make the queue"))
    await expect(main.get_by_role("heading", name="Did it help?")).to_be_visible()

    operator.clicks = 0
    await operator.click(main.get_by_role("button", name="Yes"))
    await expect(main.get_by_text("1 scored, 0 skipped, 4 open")).to_be_visible()
    assert operator.clicks <= MAX_CLICKS_PER_SCORE
    await page.wait_for_load_state()
    await page.keyboard.press("n")
    await expect(main.get_by_text("2 scored, 0 skipped, 3 open")).to_be_visible()
    await page.get_by_label("Comment").fill("Too short, yes: a comment takes no keys.")
    await operator.click(main.get_by_role("button", name="No"))
    await expect(main.get_by_text("3 scored, 0 skipped, 2 open")).to_be_visible()
    assert operator.clicks <= 2 * MAX_CLICKS_PER_SCORE
    await page.wait_for_load_state()
    await page.keyboard.press("s")
    await expect(main.get_by_text("3 scored, 1 skipped, 1 open")).to_be_visible()

    found = re.search(r"/reviews/[^/]+/([^/?]+)", page.url)
    assert found
    queue = operator.api(f"reviews/{found[1]}")
    assert queue["progress"] == {"items": 5, "open": 1, "done": 3, "skipped": 1}
    scores = operator.api("scores", {"score_name": "helpful", "evaluator_type": "human"})["results"]
    assert sorted(score["score_value"] for score in scores) == [0, 0, 1]
    assert {score["created_by"] for score in scores} != {""}
