from __future__ import annotations

import json
import uuid
from typing import Any
from urllib.parse import quote

import pytest
from playwright.async_api import Page, expect

from tests.agent.chat.playing import calls, says
from tests.browser.actions import overflows, sign_in, unlabelled
from tests.browser.problems import Problems
from tests.fakes.scripted import ScriptedServer
from tests.live.panel import PATH, Office, PanelPage, make_office
from tests.live.playground import give_role, make_account
from tests.live.prompts import Team
from tests.live.service import LiveService


async def test_panel__agent_is_switched_off__says_so(
    panel: PanelPage, live_service: LiveService, upstream: ScriptedServer, problems: Problems
) -> None:
    problems.expect("status of 403")
    disabled = Team(live_service, "without an agent")
    make_office(disabled, upstream, panel.office.user, enabled=False)
    give_role(disabled, panel.office.user, "reader")
    await panel.open(project_id=disabled.project_id)
    await expect(panel.page.locator("#agent-notice")).to_contain_text("The agent is switched off")
    await panel.ask("Hello?")
    await panel.done("Not sent")
    await expect(panel.page.locator("#agent-problem")).to_contain_text("The agent is switched off")
    await panel.choose(panel.office.team.project_id)
    await expect(panel.page.locator("#agent-notice")).to_be_hidden()


async def test_panel__session_is_over__leads_to_the_login_with_the_message_kept(
    panel: PanelPage, problems: Problems
) -> None:
    problems.expect("status of 401")
    page = panel.page
    await page.context.clear_cookies()
    await panel.ask("Where?")
    await panel.done("Not sent")
    await page.get_by_role("link", name="Sign in again").click()
    await expect(page.get_by_label("Username:")).to_be_visible()
    assert f"/admin/login/?next={quote(PATH, safe='')}" in page.url
    await page.get_by_label("Username:").fill(panel.office.user.name)
    await page.get_by_label("Password:").fill(panel.office.user.password)
    await page.get_by_role("button", name="Log in").click()
    await panel.ready()
    await expect(panel.message).to_have_value("Where?")


async def test_panel__opened_from_a_page__tells_the_agent_of_it_once(panel: PanelPage, office: Office) -> None:
    page = panel.page
    script = office.play(says("I see it."))
    session = f"s-{uuid.uuid4().hex}"
    shown = f"/admin/analytics/requests/?project={office.team.project_id}&session={session}"
    await panel.open(f"?from={quote(shown, safe='')}")
    await expect(page.locator("#agent-root")).to_have_attribute("data-project", office.team.project_id)
    await expect(page.locator("#agent-origin")).to_contain_text("/admin/analytics/requests/")
    await panel.ask("What is wrong here?")
    await panel.done()
    await expect(page.locator("#agent-origin")).to_be_hidden()
    await panel.ask("And else?")
    await panel.done()
    first, _, again = [
        message["content"] for message in json.loads(script.received[1].body)["messages"] if message["role"] != "system"
    ]
    assert session in first
    assert session not in again
    (row,) = office.conversations()
    context = office.messages(row["conversation_id"])[0]["page_context"]
    assert context["page"] == "/admin/analytics/requests/"
    assert context["data"]["query"] == {"project": office.team.project_id, "session": session}


async def test_panel__keys__shift_enter_is_a_new_line(panel: PanelPage, office: Office) -> None:
    office.play(says("Done."))
    await panel.message.fill("one")
    await panel.message.press("Shift+Enter")
    await panel.page.keyboard.type("two")
    await expect(panel.message).to_have_value("one\ntwo")
    await panel.message.press("Enter")
    await panel.done()
    await expect(panel.message).to_have_value("")
    await panel.ask("   ")
    await expect(panel.questions).to_have_count(1)
    (row,) = office.conversations()
    assert office.messages(row["conversation_id"])[0]["content"] == "one\ntwo"


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_panel__narrow_window__fits_and_every_field_has_a_name(
    panel: PanelPage, office: Office, scheme: Any
) -> None:
    page = panel.page
    table = "|".join(["wide"] * 30)
    office.play(
        calls(("get_project", {})), says(f"{'word' * 200}\n\n|{table}|\n|{'-|' * 30}\n|{table}|\n\n`{'code' * 200}`")
    )
    await page.set_viewport_size({"width": 400, "height": 800})
    await page.emulate_media(color_scheme=scheme)
    await panel.ask("question" * 50)
    await panel.done()
    await panel.tool("get_project").get_by_text("get_project").click()
    await expect(panel.answers.get_by_role("table")).to_be_visible()
    assert await unlabelled(page) == []
    assert not await overflows(page)
    background: str = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(15, 16, 18)")


async def test_index__links_to_the_panel_for_those_who_may_use_it(panel: PanelPage) -> None:
    page = panel.page
    await page.goto(f"{panel.office.team.service.base_url}/admin/tables/")
    await page.get_by_role("main").get_by_role("link", name="Ask the agent", exact=True).first.click()
    await expect(page.get_by_role("heading", name="Ask the agent")).to_be_visible()


async def test_panel__staff_without_the_permission__is_refused(page: Page, office: Office, problems: Problems) -> None:
    problems.expect("status of 403")
    account = make_account(office.team, "reader_without_content")
    await sign_in(page, office.team.service.base_url, account.name, account.password)
    await expect(page.get_by_role("link", name="Ask the agent", exact=True)).to_have_count(0)
    response = await page.goto(office.url)
    assert response is not None
    assert response.status == 403


async def test_panel__nobody_signed_in__leads_to_the_login(page: Page, office: Office) -> None:
    await page.goto(office.url)
    assert f"/admin/login/?next={PATH}" in page.url


async def test_panel__policy__allows_the_services_own_files_only(panel: PanelPage) -> None:
    response = await panel.page.request.get(panel.office.url)
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "<script>" not in await response.text()


async def test_pages__link_to_the_panel__and_come_along(panel: PanelPage) -> None:
    page = panel.page
    await page.goto(f"{panel.office.team.service.base_url}/admin/agent/?of=a%26b")
    await page.get_by_role("banner").get_by_role("link", name="Ask the agent").click()
    await panel.ready()
    await expect(page.locator("#agent-origin")).to_contain_text("/admin/agent/")
    origin: str = await page.locator("#agent-origin-data").inner_text()
    assert json.loads(origin)["data"]["query"] == {"of": "a&b"}
