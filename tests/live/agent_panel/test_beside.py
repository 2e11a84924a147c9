from __future__ import annotations

import json

import pytest
from playwright.async_api import Page, expect

from tests.agent.chat.playing import says
from tests.browser.actions import overflows, unlabelled
from tests.browser.axe import violations
from tests.browser.problems import Problems
from tests.live.panel import Office, PanelPage

QUEUES = "/admin/reviews/"


async def opened(panel: PanelPage, path: str = QUEUES) -> PanelPage:
    await panel.page.goto(f"{panel.office.team.service.base_url}{path}?project={panel.office.team.project_id}")
    return panel


async def test_beside__button__opens_and_escape_gives_the_focus_back(panel: PanelPage) -> None:
    page = (await opened(panel)).page
    button = page.get_by_role("banner").get_by_role("link", name="Ask the agent")
    dialog = page.get_by_role("dialog", name="Ask the agent")
    await expect(dialog).to_be_hidden()

    await button.click()
    await panel.ready()
    await expect(panel.message).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await expect(button).to_be_focused()

    await page.keyboard.press("a")
    await expect(panel.message).to_be_focused()
    await page.keyboard.press("a")
    await expect(panel.message).to_have_value("a")
    await dialog.get_by_role("button", name="Close").click()
    await expect(dialog).to_be_hidden()


async def test_beside__question_of_the_page__is_sent_with_the_page_and_its_answer_links_what_it_names(
    panel: PanelPage, office: Office
) -> None:
    office.team.command(
        "shell", "--verbosity", "0", "-c",
        "from analytics.models import ReviewQueue\n"
        f"ReviewQueue.objects.get_or_create(project_id='{office.team.project_id}', name='Did it help?',"
        " defaults=dict(sample_size=1, score_name='helpful', kind='boolean'))",
    )  # fmt: skip
    script = office.play(says("They agree in `Did it help?`, not in `another`."))
    page = (await opened(panel)).page

    await page.get_by_role("banner").get_by_role("link", name="Ask the agent").click()
    await page.get_by_role("button", name="How far do reviewers and judges agree?").click()
    await panel.done()

    received = [message["content"] for message in json.loads(script.received[0].body)["messages"]]
    assert QUEUES in received[-1] and office.team.project_id in received[-1]
    await expect(panel.answers).to_contain_text("not in another")
    link = panel.answers.get_by_role("link")
    await expect(link).to_have_text("Did it help?")
    await link.click()
    await expect(page.get_by_role("heading", name="Did it help?")).to_be_visible()
    # The panel and the conversation come along to the next page.
    await panel.ready()
    await expect(panel.questions).to_contain_text("How far do reviewers and judges agree?")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1440])
async def test_beside__both_widths__accessible_and_inside_the_window(
    panel: PanelPage, office: Office, width: int, scheme: str
) -> None:
    page: Page = panel.page
    await page.set_viewport_size({"width": width, "height": 800})
    await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    office.play(says(f"{'word' * 100}\n\n|a|b|\n|-|-|\n|1|2|\n\n`code`"))
    await opened(panel)
    await page.get_by_role("banner").get_by_role("link", name="Ask the agent").click()
    await panel.ask("Well?")
    await panel.done()

    assert await violations(page) == []
    assert await unlabelled(page) == []
    assert not await overflows(page)
    if width == 400:
        box = await page.get_by_role("dialog", name="Ask the agent").bounding_box()
        assert box is not None and box["width"] == width


async def test_beside__panel_cannot_be_loaded__its_own_page_opens(panel: PanelPage, problems: Problems) -> None:
    problems.expect("ERR_FAILED")
    page = (await opened(panel)).page
    await page.route("**/agent/panel/beside/*", lambda route: route.abort())

    await page.get_by_role("banner").get_by_role("link", name="Ask the agent").click()

    await panel.ready()
    assert "/admin/agent/panel/" in page.url


async def test_beside__own_page__has_no_second_panel(panel: PanelPage) -> None:
    await expect(panel.page.locator("#agent-link")).to_have_count(0)
