"""Job 12: ask the agent about the page, in at most two clicks."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.async_api import expect

from tests.agent.chat.playing import says
from tests.fakes.scripted import ScriptedServer
from tests.live.operators.operator import Operator
from tests.live.panel import make_office
from tests.live.prompts import Team

MAX_CLICKS = 2


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


async def test_job__ask_the_agent__answers_with_links_in_two_clicks(
    operator: Operator, busy_team: Team, upstream: ScriptedServer
) -> None:
    office = make_office(busy_team, upstream)
    request = operator.api("requests", {"outcome": "error", "limit": 1})["results"][0]
    answer = says(f"Most failed at one provider, such as `{request['request_id']}` of `{request['user_id']}`.")
    script = office.play(answer)
    page = operator.page
    await operator.open("/admin/", range="24h")

    await operator.click(page.get_by_role("banner").get_by_role("link", name="Ask the agent"))
    dialog = page.get_by_role("dialog", name="Ask the agent")
    await operator.click(dialog.get_by_role("button", name="Which requests failed in the last hour, and why?"))

    link = dialog.get_by_role("link", name=request["request_id"])
    await expect(link).to_be_visible()
    assert operator.clicks <= MAX_CLICKS
    # The service also asks the provider for its models, which has no body.
    body = next(json.loads(received.body) for received in script.received if received.body)
    question = body["messages"][-1]["content"]
    assert "24h" in question and busy_team.project_id in question
    await operator.click(link)
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert request["request_id"] in page.url
