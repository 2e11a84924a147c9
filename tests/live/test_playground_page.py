from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.actions import overflows, sign_in, unlabelled
from tests.browser.problems import Problems
from tests.fakes.scripted import ScriptedServer, answer, endless, status
from tests.live.playground import PATH, PlaygroundPage, Stage, gated, make_account, make_stage
from tests.live.prompts import EachWorker, Team
from tests.live.service import LiveService
from tests.waiting import TIMEOUT_SECONDS, wait_until

GOOD, BETTER, BAD, ENDLESS = "openai/good", "openai/better", "openai/bad", "openai/endless"
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script> **bold** <b>b</b> &amp; {{7*7}}"
GRADES = {name: {"reason": "Fine.", "score": 80} for name in ("relevance", "coherence", "helpfulness")}
_VARIABLES = [
    {"name": "goods", "type": "string", "required": True},
    {"name": "count", "type": "number", "required": True},
    {"name": "fresh", "type": "boolean", "required": False},
]


@pytest.fixture(scope="module")
def stage(live_service: LiveService) -> Iterator[Stage]:
    with ScriptedServer() as upstream:
        yield make_stage(Team(live_service, "playground page"), upstream)


@pytest_asyncio.fixture(loop_scope="session")
async def playground(page: Page, stage: Stage) -> PlaygroundPage:
    made = PlaygroundPage(page, stage)
    await made.sign_in()
    await made.open()
    return made


async def test_page__two_models__answer_side_by_side(playground: PlaygroundPage, stage: Stage) -> None:
    gate = threading.Event()
    stage.play(good=gated(["It ", "is "], gate, ["Paris."]), better=gated(["Surely "], gate, ["Paris."]))
    await playground.ask("What is the capital of France?", GOOD, BETTER)
    await playground.run()

    # Neither model has finished its answer, and both texts are shown.
    await expect(playground.text(GOOD)).to_have_text("It is ")
    await expect(playground.text(BETTER)).to_have_text("Surely ")
    await expect(playground.answer(GOOD)).to_contain_text("answering")
    await expect(playground.run_button).to_be_disabled()
    gate.set()

    await playground.done("2 of 2 answered")
    await expect(playground.text(GOOD)).to_have_text("It is Paris.")
    await expect(playground.text(BETTER)).to_have_text("Surely Paris.")
    figures = await playground.figures(GOOD)
    assert {name: figures[name] for name in ("Tokens", "Cost", "Finish", "Served")} == {
        "Tokens": "11 + 7",
        "Cost": "$0.000036",
        "Finish": "stop",
        "Served": "openai, good",
    }
    assert figures["Latency"].endswith(" ms")
    assert figures["First token"].endswith(" ms")
    await expect(playground.answer(BETTER)).to_contain_text("cheapest")
    await expect(playground.answer(GOOD)).not_to_contain_text("cheapest")
    await expect(playground.page.get_by_text("fastest", exact=True)).to_have_count(1)


async def test_page__one_fails_and_one_is_stopped__says_so_and_keeps_the_others(
    playground: PlaygroundPage, stage: Stage
) -> None:
    script = stage.play(good=answer("Paris"), bad=status(503, "no capacity"), endless=endless())
    await playground.ask("Where?", GOOD, BAD, ENDLESS)
    await playground.page.get_by_label("Keep as a session").check()
    await playground.page.get_by_label("Name of the session").fill("three at once")
    await playground.run()
    await expect(playground.text(ENDLESS)).to_contain_text("word word")
    await expect(playground.answer(BAD)).to_contain_text("provider_unavailable")
    await expect(playground.answer(GOOD)).to_contain_text("done")
    await playground.page.get_by_role("button", name=f"Stop {ENDLESS}").click()

    await playground.done("1 of 3 answered, kept as session three at once")
    await expect(playground.answer(ENDLESS)).to_contain_text("stopped")
    stopped = next(received for received in script.received if json.loads(received.body)["model"] == "endless")
    assert stopped.gone.wait(TIMEOUT_SECONDS)
    kept = stage.kept_requests("three at once", 3)
    assert {row["model"] or "bad": row["outcome"] for row in kept} == {
        "good": "success",
        "bad": "error",
        "endless": "cancelled",
    }


async def test_page__stop_all__ends_every_answer(playground: PlaygroundPage, stage: Stage) -> None:
    script = stage.play(endless=endless(), good=endless())
    await playground.ask("Where?", ENDLESS, GOOD)
    await playground.run()
    await expect(playground.text(ENDLESS)).to_contain_text("word")
    await expect(playground.text(GOOD)).to_contain_text("word")
    await playground.page.get_by_role("button", name="Stop all").click()
    await playground.done("0 of 2 answered")
    assert all(received.gone.wait(TIMEOUT_SECONDS) for received in script.received)


async def test_page__kept_as_a_session__is_listed_and_linked(playground: PlaygroundPage, stage: Stage) -> None:
    stage.play(good=answer("Paris"), better=answer("Paris"))
    await playground.ask("Where?", GOOD, BETTER)
    await playground.page.get_by_label("Keep as a session").check()
    await playground.run()
    await playground.done("kept as session playground-")
    link = playground.status.get_by_role("link")
    session_id = await link.inner_text()
    assert len(stage.kept_requests(session_id, 2)) == 2

    def listed() -> list[int]:
        rows = stage.manage("sessions", project_id=stage.team.project_id)["results"]
        return [row["request_count"] for row in rows if row["session_id"] == session_id]

    # A view's rows may become visible a moment after the rows that they are made of.
    wait_until(lambda: listed() == [2], what="both requests in the list of sessions")
    await link.click()
    await expect(playground.page.get_by_role("main")).to_contain_text("2 in all")


async def test_page__wide_window__answers_stand_beside_the_settings_and_link_their_requests(
    playground: PlaygroundPage, stage: Stage
) -> None:
    page = playground.page
    stage.play(good=answer("Paris"), better=answer("Rome"))
    await page.set_viewport_size({"width": 1440, "height": 900})
    await playground.ask("Where?", GOOD, BETTER)
    await playground.run()
    await playground.done("2 of 2 answered")

    settings, answers = await page.locator("#playground").bounding_box(), await page.locator("#results").bounding_box()
    assert settings is not None and answers is not None
    assert settings["x"] + settings["width"] <= answers["x"]
    for found in (playground.text(GOOD), playground.text(BETTER), playground.run_button):
        await expect(found).to_be_in_viewport()

    request_id = (await playground.figures(GOOD))["Request"]
    wait_until(lambda: request_id in [row["request_id"] for row in stage.manage("requests")["results"]])
    await playground.answer(GOOD).get_by_role("link", name=request_id).click()
    await expect(page.get_by_role("main")).to_contain_text("Paris")


async def test_page__prompt_version__has_a_field_for_each_variable(
    playground: PlaygroundPage, stage: Stage, problems: Problems
) -> None:
    problems.expect("status of 422")
    first = {"system_prompt": "You sell.", "model": "sandbox/echo"}
    second = {"system_prompt": "You sell {{count}} {{goods}}, {{fresh}}.", "model": "sandbox/mirror"}
    shop = stage.team.prompt("shop", first, {**second, "variables": _VARIABLES})
    with EachWorker(shop) as workers:
        workers.all_serve("1 -")
    await playground.open()
    page = playground.page
    await page.get_by_label("Prompt config").select_option("shop")
    await expect(page.get_by_label("Version")).to_have_text("2\n1, active", use_inner_text=True)
    await page.get_by_label("Version").select_option("2")
    assert await unlabelled(page) == []
    await page.get_by_label("fresh (boolean)").select_option("true")
    # The version's model stays chosen until another one is chosen.
    await expect(playground.chosen).to_have_text(["sandbox/mirror"])
    await playground.ask("What is there?")

    count = page.get_by_label("count (number, required)")
    await count.fill("many")
    await playground.run()
    await expect(page.get_by_text("Has to be a number.")).to_be_visible()
    await count.fill("3")
    await playground.run()
    goods = page.get_by_label("goods (string, required)")
    await expect(goods).to_have_attribute("aria-invalid", "true")
    await expect(goods).to_have_accessible_description("Is required.")
    await expect(count).not_to_have_attribute("aria-invalid", "true")
    await expect(playground.answer("sandbox/mirror")).to_contain_text("missing_variable")

    await goods.fill("pears\n& <plums>")
    await playground.run()
    await playground.done("1 of 1 answered")
    await expect(goods).not_to_have_attribute("aria-invalid", "true")
    messages = json.loads(await playground.text("sandbox/mirror").inner_text())
    assert messages[0] == {"role": "system", "content": "You sell 3 pears\n& <plums>, true."}
    assert (await playground.figures("sandbox/mirror"))["Prompt"] == "version 2"


async def test_page__another_projects_prompt__is_out_of_reach(
    playground: PlaygroundPage, stage: Stage, live_service: LiveService
) -> None:
    other = Team(live_service, "somebody else's")
    other.prompt("secret", {"system_prompt": "Mine.", "model": "sandbox/echo"})
    page = playground.page
    await playground.open()
    await expect(page.get_by_label("Prompt config").locator("option", has_text="secret")).to_have_count(0)
    token = await page.locator("#playground [name=csrfmiddlewaretoken]").input_value()
    request_body = {"messages": [{"role": "user", "content": "x"}], "model": GOOD, "prompt_config": "secret"}
    response = await page.request.post(
        f"{live_service.base_url}/api/llm/playground",
        data={**request_body, "prompt_version": 1, "stream": True},
        headers={"X-CSRFToken": token, "X-Project-Id": stage.team.project_id},
    )
    assert (response.status, (await response.json())["error"]["code"]) == (404, "prompt_config_not_found")


async def test_page__hostile_answer__is_shown_as_text(playground: PlaygroundPage, stage: Stage) -> None:
    dialogs: list[str] = []
    playground.page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    stage.play(good=answer(HOSTILE), bad=status(400, HOSTILE))
    await playground.ask(HOSTILE, GOOD, BAD)
    await playground.choose("<b>no/such</b>")
    await playground.run()
    await playground.done("1 of 3 answered")
    await expect(playground.text(GOOD)).to_have_text(HOSTILE)
    await expect(playground.answer(BAD)).to_contain_text(HOSTILE)
    await expect(playground.answer("<b>no/such</b>")).to_contain_text("model_not_found")
    assert await playground.page.locator("#results img, #results script, #results b").count() == 0
    assert dialogs == []


async def test_page__models__are_found_by_their_names_and_five_at_most(playground: PlaygroundPage) -> None:
    page = playground.page
    field = page.get_by_role("combobox", name="Add a model")
    await field.fill("openai BETT")
    option = page.get_by_role("option", name="openai/better")
    await expect(option).to_contain_text("$1 / $1 per 1M")
    await field.press("ArrowDown")
    await expect(option).to_have_attribute("aria-selected", "true")
    await field.press("Enter")
    await field.fill("sandbox/ech")
    await page.get_by_role("option", name="sandbox/echo").click()
    await playground.choose("a", "b", "b", "c", "d")
    await expect(playground.chosen).to_have_text([BETTER, "sandbox/echo", "a", "b", "c"])
    await expect(page.get_by_text("At most 5 models can be compared.")).to_be_visible()
    await page.get_by_role("button", name="Remove a", exact=True).click()
    await playground.choose("d")
    await expect(playground.chosen).to_have_text([BETTER, "sandbox/echo", "b", "c", "d"])


async def test_page__messages__are_sent_in_their_order(playground: PlaygroundPage, stage: Stage) -> None:
    page = playground.page
    script = stage.play(good=answer("Paris"))
    await playground.ask("second", GOOD)
    for text, role in (("third", "assistant"), ("gone", "user"), ("first", "system")):
        await page.get_by_role("button", name="Add a message").click()
        row = await page.get_by_role("listitem").filter(has=page.get_by_label("Text of message")).count()
        await page.get_by_label(f"Text of message {row}").fill(text)
        await page.get_by_label(f"Role of message {row}").select_option(role)
    await page.get_by_role("button", name="Remove message 3").click()
    up = page.get_by_role("button", name="Move message 3 up")
    await up.focus()
    # The button keeps the focus while its message moves.
    await page.keyboard.press("Enter")
    await page.keyboard.press("Enter")
    await page.get_by_label("Temperature").fill("0.5")
    await page.get_by_label("Stop at").fill("END")
    await page.keyboard.press("Control+Enter")
    await playground.done("1 of 1 answered")
    sent = json.loads(script.received[-1].body)
    assert [(message["role"], message["content"]) for message in sent["messages"]] == [
        ("system", "first"),
        ("user", "second"),
        ("assistant", "third"),
    ]
    assert (sent["temperature"], sent["stop"], "max_tokens" in sent) == (0.5, "END", False)


async def test_page__refused_fields__have_their_errors_beside_them(
    playground: PlaygroundPage, stage: Stage, problems: Problems
) -> None:
    problems.expect("status of 400")
    page = playground.page
    await playground.run()
    await expect(page.get_by_text("Choose at least one model.")).to_be_visible()
    await playground.choose(GOOD)
    await page.get_by_label("Temperature").fill("hot")
    await playground.run()
    await expect(page.get_by_label("Temperature")).to_have_accessible_description("Has to be a number.")
    await page.get_by_label("Temperature").fill("3")
    await playground.run()
    await expect(page.get_by_label("Temperature")).to_have_attribute("aria-invalid", "true")
    await page.get_by_label("Temperature").fill("")
    await page.get_by_role("button", name="Remove message 1").click()
    await playground.run()
    await expect(page.locator("#messages-problem")).to_be_visible()
    await expect(page.get_by_label("Temperature")).not_to_have_attribute("aria-invalid", "true")


async def test_page__session_is_over__says_so_and_can_be_run_again(
    playground: PlaygroundPage, problems: Problems
) -> None:
    problems.expect("status of 401")
    await playground.ask("Where?", GOOD)
    await playground.page.get_by_label("Keep as a session").check()
    await playground.page.context.clear_cookies()
    await playground.run()
    await playground.done("0 of 1 answered")
    await expect(playground.answer(GOOD)).to_contain_text("missing_api_key")
    # No request was sent that a session could list.
    await expect(playground.status).not_to_contain_text("kept")


async def test_page__service_goes_away__says_so(playground: PlaygroundPage, stage: Stage, problems: Problems) -> None:
    problems.expect("ERR_CONNECTION_REFUSED")
    await playground.ask("Where?", GOOD)
    refuse = "connectionrefused"
    await playground.page.context.route("**/api/llm/playground", lambda route: route.abort(refuse))
    await playground.run()
    await playground.done("0 of 1 answered")
    await expect(playground.answer(GOOD)).to_contain_text("The connection to the service broke.")


async def test_page__judge__scores_are_shown(playground: PlaygroundPage, stage: Stage) -> None:
    stage.play(good=answer("Paris"), judge=answer(json.dumps(GRADES)))
    await playground.ask("Where?", GOOD)
    await playground.page.get_by_label("Have a judge score the answers").check()
    await playground.run()
    await playground.done("1 of 1 answered")
    figures = await playground.figures(GOOD)
    assert [figures[name] for name in GRADES] == ["80", "80", "80"]


async def test_page__loaded_again__has_what_was_typed_and_no_secret(playground: PlaygroundPage, stage: Stage) -> None:
    page = playground.page
    await playground.ask("Where is Paris?", GOOD)
    await page.get_by_label("Max tokens").fill("7")
    await page.get_by_label("Keep as a session").check()
    await page.reload()
    await playground.ready()
    await expect(page.locator("#project")).to_have_value(stage.team.project_id)
    await expect(page.get_by_label("Text of message 1")).to_have_value("Where is Paris?")
    await expect(playground.chosen).to_have_text([GOOD])
    await expect(page.get_by_label("Max tokens")).to_have_value("7")
    await expect(page.get_by_label("Keep as a session")).to_be_checked()
    kept: str = await page.evaluate("JSON.stringify({...localStorage})")
    token = await page.locator("#playground [name=csrfmiddlewaretoken]").input_value()
    assert token not in kept
    assert "svc_" not in kept
    await page.get_by_role("button", name="Empty the form").click()
    await expect(page.get_by_label("Text of message 1")).to_have_value("")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_page__narrow_window__fits_and_every_field_has_a_name(
    playground: PlaygroundPage, stage: Stage, scheme: Any
) -> None:
    page = playground.page
    stage.play(good=answer("word" * 200))
    await page.set_viewport_size({"width": 400, "height": 800})
    await page.emulate_media(color_scheme=scheme)
    await playground.ask("Where?", GOOD)
    await playground.run()
    await playground.done("1 of 1 answered")
    assert await unlabelled(page) == []
    assert not await overflows(page)
    background: str = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(15, 16, 18)")


async def test_index__links_to_the_page_for_those_who_may_use_it(playground: PlaygroundPage) -> None:
    page = playground.page
    await page.goto(f"{playground.stage.team.service.base_url}/admin/")
    await page.get_by_role("navigation", name="Pages").get_by_role("link", name="Playground").click()
    await expect(page.get_by_role("heading", name="Playground")).to_be_visible()


async def test_page__staff_without_the_permission__is_refused(page: Page, stage: Stage, problems: Problems) -> None:
    problems.expect("status of 403")
    account = make_account(stage.team, "reader")
    await sign_in(page, stage.team.service.base_url, account.name, account.password)
    await expect(page.get_by_role("link", name="Playground", exact=True)).to_have_count(0)
    response = await page.goto(stage.url)
    assert response is not None
    assert response.status == 403


async def test_page__nobody_signed_in__leads_to_the_login(page: Page, stage: Stage) -> None:
    await page.goto(stage.url)
    assert f"/admin/login/?next={PATH}" in page.url


async def test_page__policy__allows_the_services_own_files_only(playground: PlaygroundPage) -> None:
    response = await playground.page.request.get(playground.stage.url)
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "<script>" not in await response.text()
    assert (await playground.page.request.put(playground.stage.url)).status == 403  # The request has no CSRF token.
