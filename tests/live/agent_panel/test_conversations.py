from __future__ import annotations

import asyncio

from playwright.async_api import Route, expect

from tests.agent.chat.playing import calls, says
from tests.browser.problems import Problems
from tests.fakes.scripted import ScriptedServer, endless
from tests.live.panel import Office, PanelPage, make_office
from tests.live.playground import give_role
from tests.live.prompts import Team
from tests.live.service import LiveService

_MANY = """
from django.utils import timezone
from agent.models import Conversation, Message
made = [Conversation(project_id="{project_id}", title=f"short {{n}}") for n in range(40)]
made.append(Conversation(project_id="{project_id}", title="the long one", last_sequence=250, updated_at=timezone.now()))
Conversation.objects.bulk_create(made)
Message.objects.bulk_create(
    Message(conversation=made[-1], sequence=2 * n + extra - 1, role=role, content=f"{{word}} {{n}}")
    for n in range(1, 126)
    for extra, role, word in ((0, "user", "question"), (1, "assistant", "answer"))
)
"""


async def test_panel__loaded_again__goes_on_with_the_same_conversation(panel: PanelPage, office: Office) -> None:
    page = panel.page
    office.play(calls(("get_project", {})), says("It is *yours*."), says("As I said."))
    await panel.ask("Whose?")
    await panel.done()
    await panel.message.fill("not sent yet")
    await page.reload()
    await panel.ready()
    await expect(panel.questions).to_contain_text("Whose?")
    await expect(panel.answers.get_by_role("emphasis")).to_have_text("yours")
    await expect(panel.tool("get_project")).to_contain_text("done")
    await expect(panel.message).to_have_value("not sent yet")
    stored: str = await page.evaluate("JSON.stringify({...localStorage})")
    assert await page.locator("#agent-composer [name=csrfmiddlewaretoken]").input_value() not in stored
    assert "svc_" not in stored
    await panel.ask("Whose, again?")
    await panel.done()
    (row,) = office.conversations()
    assert row["message_count"] == 6


async def test_panel__conversations__are_opened_begun_and_deleted(panel: PanelPage, office: Office) -> None:
    page = panel.page
    office.play(says("One."), says("Two."))
    await panel.ask("first")
    await panel.done()
    await page.get_by_role("button", name="New conversation").click()
    await expect(panel.answers).to_have_count(0)
    await expect(panel.message).to_be_focused()
    await panel.ask("second")
    await panel.done()
    await expect(panel.answers).to_contain_text("Two.")
    await panel.list.get_by_role("button", name="first").first.click()
    await expect(panel.answers).to_contain_text("One.")

    remove = page.get_by_role("button", name="Delete first", exact=True)
    await remove.click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Delete “first”")
    await dialog.get_by_role("button", name="Keep").click()
    assert len(office.conversations()) == 2
    await remove.click()
    await dialog.get_by_role("button", name="Delete").click()
    await expect(remove).to_have_count(0)
    await expect(panel.answers).to_have_count(0)
    assert [row["title"] for row in office.conversations()] == ["second"]
    await panel.list.get_by_role("button", name="second").first.click()
    await expect(panel.answers).to_contain_text("Two.")


async def test_panel__conversation_is_busy_or_gone__says_so_and_keeps_the_message(
    panel: PanelPage, office: Office, problems: Problems
) -> None:
    problems.expect("status of 409", "status of 404")
    page = panel.page
    office.play(says("One."), endless())
    await panel.ask("first")
    await panel.done()
    other = PanelPage(await page.context.new_page(), office)
    await other.open()
    await other.ask("count")
    await expect(other.answers.last).to_contain_text("word")
    await panel.ask("me too")
    await panel.done("Not sent")
    problem = page.locator("#agent-problem")
    await expect(problem).to_contain_text("The agent is answering in this conversation")
    await expect(panel.message).to_have_value("me too")
    await expect(panel.questions).to_have_count(1)
    await other.stop_button.click()
    await other.done("Stopped")
    office.wait_until_idle()
    office.play(says("You too."))
    await problem.get_by_role("button", name="Retry").click()
    await panel.done()
    await expect(panel.answers.last).to_contain_text("You too.")

    office.empty()
    await panel.ask("and now?")
    await panel.done("Not sent")
    await expect(problem).to_contain_text("was deleted")
    await problem.get_by_role("button", name="Retry").click()
    await panel.done()
    assert [row["title"] for row in office.conversations()] == ["and now?"]


async def test_panel__two_projects__are_apart(
    panel: PanelPage, office: Office, live_service: LiveService, upstream: ScriptedServer
) -> None:
    second = make_office(Team(live_service, "another project"), upstream, office.user)
    give_role(second.team, office.user, "reader")
    office.play(says("Of the first."))
    second.play(calls(("get_project", {})), says("Of the second."))
    await panel.open()
    await panel.ask("first")
    await panel.done()
    await panel.choose(second.team.project_id)
    await expect(panel.answers).to_have_count(0)
    await expect(panel.list.get_by_role("button", name="first")).to_have_count(0)
    await panel.ask("second")
    await panel.done()
    tool = panel.tool("get_project")
    await tool.get_by_text("get_project").click()
    await expect(tool).to_contain_text(second.team.project_id)
    await panel.choose(office.team.project_id)
    # Each project continues with the conversation that was open in it.
    await expect(panel.answers).to_contain_text("Of the first.")
    assert [row["title"] for row in second.conversations()] == ["second"]
    assert [row["title"] for row in office.conversations()] == ["first"]


async def test_panel__many_conversations_and_messages__come_by_page(panel: PanelPage, office: Office) -> None:
    page = panel.page
    office.team.command("shell", "--verbosity", "0", "-c", _MANY.format(project_id=office.team.project_id))
    await page.reload()
    await panel.ready()
    rows = panel.list.get_by_role("listitem")
    await expect(rows).to_have_count(30)
    older = page.get_by_role("button", name="Older conversations")
    await older.click()
    await expect(rows).to_have_count(41)
    await expect(older).to_be_hidden()

    await panel.list.get_by_role("button", name="the long one").first.click()
    await expect(panel.messages).to_contain_text("answer 125")
    await expect(panel.questions).to_have_count(50)
    earlier = page.get_by_role("button", name="Earlier messages")
    office.play(says("On it goes."))
    await panel.ask("goes on")
    await panel.done()
    await earlier.click()
    await expect(panel.questions).to_have_count(101)
    await earlier.click()
    await expect(earlier).to_be_hidden()
    await expect(panel.questions).to_have_count(126)
    assert await panel.questions.first.inner_text() == "You\nquestion 1"
    await expect(panel.questions.last).to_contain_text("goes on")
    await expect(panel.answers.last).to_contain_text("On it goes.")


async def test_panel__message_sent_while_the_conversation_loads__follows_the_stored_ones(
    panel: PanelPage, office: Office
) -> None:
    office.play(says("One."), says("Two."))
    await panel.ask("first")
    await panel.done()
    is_sent = asyncio.Event()

    async def late(route: Route) -> None:
        await is_sent.wait()
        await route.continue_()

    await panel.page.route("**/messages?*", late)
    await panel.page.reload()
    await panel.ask("second")
    await expect(panel.send_button).to_be_disabled()
    is_sent.set()
    await panel.done()
    await expect(panel.questions).to_have_text(["Youfirst", "Yousecond"])
    await expect(panel.answers).to_have_text(["AgentOne.", "AgentTwo."])


async def test_panel__earlier_messages_requested_twice__come_once(panel: PanelPage, office: Office) -> None:
    office.team.command("shell", "--verbosity", "0", "-c", _MANY.format(project_id=office.team.project_id))
    await panel.page.reload()
    await panel.ready()
    await panel.list.get_by_role("button", name="the long one").first.click()
    await expect(panel.questions).to_have_count(50)
    is_requested = asyncio.Event()

    async def late(route: Route) -> None:
        await is_requested.wait()
        await route.continue_()

    await panel.page.route("**/messages?*", late)
    earlier = panel.page.get_by_role("button", name="Earlier messages")
    await earlier.click()
    await earlier.click()
    is_requested.set()
    await expect(panel.questions).to_have_count(100)
    await earlier.click()
    await expect(earlier).to_be_hidden()
    await expect(panel.questions).to_have_count(125)
