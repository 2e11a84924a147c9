"""Job 5: read a long conversation and its trace, within three clicks from home."""

from __future__ import annotations

import json
import re
import secrets
import time
from dataclasses import dataclass
from typing import Any

import pytest
import requests
from playwright.async_api import expect

from tests.browser.actions import overflows
from tests.live.operators.operator import Operator
from tests.live.prompts import Team
from tests.waiting import wait_until

CALLS = 24
MAX_CLICKS = 3
_GATEWAY = "/api/gateway/v1/chat/completions"


@dataclass
class Conversation:
    session_id: str
    texts: list[str]
    spans: int


@pytest.fixture
def conversation(busy_team: Team) -> Conversation:
    made = Conversation(f"support/{secrets.token_hex(4)}", [], 0)
    trace, root = secrets.token_hex(16), secrets.token_hex(8)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Look up orders before you answer."}]
    made.texts.append("Look up orders before you answer.")
    spans, began = [], time.time()
    for number in range(CALLS):
        turn, since = secrets.token_hex(8), time.time()
        messages += _next_messages(number)
        made.texts += [str(message["content"]) for message in _next_messages(number) if message["role"] == "user"]
        answer = _call(busy_team, made.session_id, messages, f"00-{trace}-{turn}-01")
        messages.append(answer)
        made.texts += [answer["content"]] if answer["content"] else []
        spans.append(_span(made.session_id, trace, turn, root, f"turn {number}", since))
        spans += [
            _span(made.session_id, trace, secrets.token_hex(8), turn, f"step {number}.{step}", since) for step in (1, 2)
        ]
    spans.append(_span(made.session_id, trace, root, "", "agent run", began))
    made.spans = len(spans) + 2 * CALLS
    _export(busy_team, spans)
    wait_until(lambda: len(_timeline(busy_team, made)) == made.spans, what="the trace in the store")
    return made


def _next_messages(number: int) -> list[dict[str, Any]]:
    if number % 3 != 1:
        return [{"role": "user", "content": f"Question {number} about my order"}]
    function = {"name": "find_order", "arguments": json.dumps({"order": f"A-{number}"})}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": f"Order A-{number} is on its way"},
    ]


def _call(team: Team, session_id: str, messages: list[dict[str, Any]], traceparent: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {team.api_key}", "x-svc-session-id": session_id, "traceparent": traceparent}
    answer = requests.post(
        team.service.base_url + _GATEWAY,
        headers=headers,
        json={"model": "sandbox/echo", "messages": messages},
        timeout=30,
    )
    assert answer.status_code == 200, answer.text
    message: dict[str, Any] = answer.json()["choices"][0]["message"]
    return message


def _span(session_id: str, trace: str, span_id: str, parent: str, name: str, since: float) -> dict[str, Any]:
    session = {"key": "gen_ai.session_id", "value": {"stringValue": session_id}}
    return {
        "traceId": trace, "spanId": span_id, "parentSpanId": parent, "name": name, "kind": 1,
        "startTimeUnixNano": str(int(since * 1e9)), "endTimeUnixNano": str(int((time.time() + 0.01) * 1e9)),
        "attributes": [session], "status": {"code": 2 if name == "step 7.2" else 0},
    }  # fmt: skip


def _export(team: Team, spans: list[dict[str, Any]]) -> None:
    answer = requests.post(
        f"{team.service.base_url}/api/otlp/v1/traces",
        headers={"Authorization": f"Bearer {team.api_key}"},
        json={"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]},
        timeout=30,
    )
    assert answer.status_code == 200, answer.text


def _timeline(team: Team, made: Conversation) -> list[Any]:
    answer = requests.get(
        f"{team.service.base_url}/api/llm/sessions/{made.session_id.replace('/', '%2F')}/timeline",
        headers={"Authorization": f"Bearer {team.api_key}", "X-Project-Id": team.project_id},
        timeout=30,
    )
    nodes: list[Any] = answer.json().get("nodes", [])
    return nodes


async def test_operator__long_conversation_and_its_trace__read_within_three_clicks(
    operator: Operator, conversation: Conversation
) -> None:
    await operator.navigate("Sessions")
    await operator.click(operator.main.get_by_role("link", name=conversation.session_id, exact=True))
    chosen = operator.page.get_by_role("complementary", name="The chosen session")
    await operator.click(chosen.get_by_role("link", name="Open the session"))

    talk = operator.page.get_by_role("region", name="Conversation")
    await expect(
        talk.get_by_role("heading", level=3).filter(has_text=re.compile("assistant", re.I)).first
    ).to_be_visible()
    assert [text for text in await talk.locator(".turn-text").all_text_contents() if text] == conversation.texts
    trace = operator.page.get_by_role("region", name="Trace")
    await expect(trace).to_contain_text(f"{conversation.spans} spans and requests")
    await expect(trace).to_contain_text("1 failed")
    assert operator.clicks <= MAX_CLICKS
    await operator.click(trace.get_by_role("link", name="agent run"))
    await expect(operator.page.get_by_role("complementary", name="Details of the chosen span")).to_contain_text(
        "agent run"
    )
    assert not await overflows(operator.page)


async def test_operator__request_of_a_conversation__opened_in_the_playground(
    operator: Operator, conversation: Conversation
) -> None:
    await operator.open(f"/admin/analytics/sessions/{operator.team.project_id}/{conversation.session_id}")
    await operator.click(operator.page.get_by_role("region", name="Conversation").locator("[data-id]").first)
    await operator.click(operator.main.get_by_role("link", name="Next in the session"))
    await operator.click(operator.main.get_by_role("link", name="Open in playground"))

    await expect(operator.page.get_by_role("status")).to_contain_text("is filled in")
    await expect(operator.page.get_by_label("Text of message 2")).to_have_value("Question 0 about my order")
    await expect(operator.page.get_by_label("Text of message 4")).to_have_value('find_order({"order": "A-1"})')
    await expect(operator.page.get_by_role("list", name="Chosen models")).to_contain_text("sandbox/echo")
