"""Tests what the fakes of vendors refuse whose models think in loops of tools, as OpenAI's SDK sees it."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.fakes.dialects.openai import FAKES
from tests.fakes.dialects.server import DialectServer, answer_with
from tests.fakes.dialects.story import Story
from tests.tables.cases import tabled

Json = dict[str, Any]
CALL: Json = {"id": "call_1", "type": "function", "function": {"name": "weigh", "arguments": "{}"}}
LOOP: list[Json] = [
    {"role": "user", "content": "How heavy?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "4 kg"},
]
OFF, ON = {"type": "disabled"}, {"type": "enabled"}
REFUSED: dict[str, list[tuple[str, Json, str]]] = {
    "call without its reasoning": [
        ("deepseek", {"model": "deepseek-v4-pro", "messages": LOOP}, "must be passed back"),
        ("deepseek", {"model": "deepseek-chat", "messages": LOOP, "thinking": ON}, "must be passed back"),
        ("moonshot", {"model": "kimi-k2.6", "messages": LOOP}, "reasoning_content is missing"),
        ("moonshot", {"model": "kimi-k2-thinking", "messages": LOOP}, "reasoning_content is missing"),
        ("xiaomi_mimo", {"model": "mimo-v2.5", "messages": LOOP}, "must be passed back"),
    ],
    "both fields of thinking": [
        ("moonshot", {"model": "kimi-k2.6", "thinking": ON, "reasoning_effort": "high"}, "cannot specify both"),
    ],
    "thinking switched off": [("moonshot", {"model": "kimi-k3", "thinking": OFF}, "cannot be disabled")],
}
CASES = [case for cases in REFUSED.values() for case in cases]


def ask(server: DialectServer, provider: str, body: Json) -> Any:
    fake = FAKES[provider]
    server.play(provider, answer_with(fake, Story(text="ok")))
    access = fake.credentials(server.base_url(provider))
    with OpenAI(base_url=access.base_url, api_key=access.secret, max_retries=0) as sdk:
        sent = {"messages": [LOOP[0]], **body}
        return sdk.chat.completions.create(model="any", messages=[], extra_body=sent)


@tabled
def test_request__that_the_vendor_takes__answered(server: DialectServer, provider: str, body: Json) -> None:
    assert ask(server, provider, body).choices[0].message.content == "ok"


@pytest.mark.parametrize(("provider", "body", "words"), CASES, ids=str)
def test_request__that_the_vendor_refuses__raised_by_the_sdk(
    server: DialectServer, provider: str, body: Json, words: str
) -> None:
    with pytest.raises(openai.BadRequestError, match=words):
        ask(server, provider, body)
