"""Tests what the fake of Anthropic refuses, as the official SDK sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic

from tests.fakes.dialects.anthropic import FAKE
from tests.fakes.dialects.server import DialectServer, answer_with
from tests.fakes.dialects.story import Call, Story

Json = dict[str, Any]
SIGNED = "c2lnbmVkIGJ5IHRoZSBmYWtl"
STORY = Story(text="ok", reasoning="I think.", signature=SIGNED, calls=(Call("toolu_1", "weather", {}),))
USER: Json = {"role": "user", "content": "Hello"}
THOUGHT: Json = {"type": "thinking", "thinking": "I think.", "signature": SIGNED}
USE: Json = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}}
RESULT: Json = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "18"}
TOOL: Json = {"name": "weather", "input_schema": {"type": "object"}}
SEARCH: Json = {"type": "web_search_20250305", "name": "web_search"}
OPEN: Json = {"type": "object", "properties": {"a": {"type": "integer"}}}
CLOSED: Json = {**OPEN, "additionalProperties": False}
MARK: Json = {"type": "ephemeral"}
BUDGET: Json = {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 4096, "model": "claude-haiku-4-5"}


def says(role: str, *blocks: Json) -> Json:
    return {"role": role, "content": list(blocks)}


def text(words: str, **fields: Any) -> Json:
    return {"type": "text", "text": words, **fields}


def answered(schema: Json) -> Json:
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


LOOP = [USER, says("assistant", THOUGHT, USE), says("user", RESULT)]
# Each request is one that Anthropic takes.
GOOD: list[Json] = [
    {},
    {"messages": LOOP, "tools": [TOOL], "tool_choice": {"type": "any"}},
    {"messages": LOOP, "tools": [TOOL], **BUDGET},
    {"messages": [USER, says("assistant", text("It is"))], "model": "claude-haiku-4-5"},
    {"messages": [{"role": "assistant", "content": "Hello"}, USER, USER]},
    {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}, "tools": [SEARCH]},
    {"thinking": {"type": "adaptive"}, "tools": [TOOL], "tool_choice": {"type": "any"}, "model": "claude-opus-4-6"},
    answered(CLOSED),
    {"system": [text("Be brief.", cache_control={**MARK, "ttl": "1h"})],
     "messages": [says("user", text("a", cache_control=MARK))]},
    {"temperature": 0.5, "top_k": 5, "model": "claude-haiku-4-5", "max_tokens": 8192},
    {"metadata": {"user_id": "a-1"}, "stop_sequences": ["END"]},
]  # fmt: skip
# By rule: what is changed in a request that Anthropic takes, and a part of the error. `betas` go into the header.
REFUSED: dict[str, list[tuple[Json, str]]] = {
    "no message": [({"messages": []}, "at least one message is required")],
    "unknown field": [
        ({"n": 1}, "n: Extra inputs are not permitted"),
        ({"response_format": {"type": "json_object"}}, "response_format: Extra inputs"),
        ({"messages": [{**USER, "name": "ada"}]}, "messages.0.name: Extra inputs"),
        ({"messages": [says("user", text("a", index=0))]}, "messages.0.content.0.text.index: Extra inputs"),
        ({"messages": [USER, says("assistant", {**USE, "text": ""}), says("user", RESULT)]},
         "messages.1.content.0.tool_use.text: Extra inputs"),
        ({"tools": [{**TOOL, "function": {}}]}, "tools.0.custom.function: Extra inputs"),
        ({"tools": [{**SEARCH, "depth": 2}]}, "tools.0.web_search_20250305.depth: Extra inputs"),
        ({"thinking": {"type": "adaptive", "budget_tokens": 2048}}, "thinking.adaptive.budget_tokens: Extra inputs"),
        ({"tools": [TOOL], "tool_choice": {"type": "auto", "mode": "x"}}, "tool_choice.auto.mode: Extra inputs"),
        ({"output_config": {"verbosity": "low"}}, "output_config.verbosity: Extra inputs"),
        ({"system": [text("a", cache_control={**MARK, "scope": "x"})]},
         "system.0.text.cache_control.ephemeral.scope: Extra inputs"),
    ],
    "field without its beta": [
        ({"context_management": {"edits": []}}, "context_management: Extra inputs are not permitted"),
        ({"mcp_servers": [{"type": "url", "url": "https://mcp.test", "name": "m"}]}, "mcp_servers: Extra inputs"),
        ({"speed": "fast"}, "speed: Extra inputs"),
    ],
    "unknown beta": [({"betas": ["made-up-2020-01-01"]}, "Unexpected value(s) `made-up-2020-01-01`")],
    "unknown type": [
        ({"messages": [says("user", {"type": "image_url", "image_url": {"url": "u"}})]}, "Input tag 'image_url' found"),
        ({"messages": [says("user", {"type": "image", "source": {"type": "file", "file_id": "f"}})]},
         "messages.0.content.0.image.source: Input tag 'file' found"),
        ({"tools": [{"type": "function", "name": "f"}]}, "tools.0: Input tag 'function' found"),
    ],
    "missing field": [
        ({"max_tokens": ...}, "max_tokens: Field required"),
        ({"messages": ...}, "messages: Field required"),
        ({"messages": [USER, says("assistant", {"type": "thinking", "thinking": "x"}, text("a")), USER]},
         "messages.1.content.0.thinking.signature: Field required"),
        ({"tools": [{"name": "f"}]}, "tools.0.custom.input_schema: Field required"),
        ({"tools": [{"name": "f", "input_schema": {"properties": {}}}]}, "input_schema.type: Field required"),
    ],
    "role": [
        ({"messages": [{"role": "tool", "content": "a"}]}, "messages.0.role: Input should be"),
        ({"messages": [USER, {"role": "system", "content": "a"}], "model": "claude-opus-4-7"}, "not supported"),
        ({"messages": [{"role": "system", "content": "a"}, USER]}, "messages.0: a system message"),
    ],
    "name of a server tool": [({"tools": [{**SEARCH, "name": "search"}]}, "Input should be 'web_search'")],
    "name of a tool": [
        ({"tools": [{**TOOL, "name": "a.b"}]}, "tools.0.custom.name: String should match pattern"),
        ({"tools": [{**TOOL, "name": "n" * 129}]}, "'^[a-zA-Z0-9_-]{1,128}$'"),
    ],
    "repeated name of a tool": [({"tools": [TOOL, TOOL]}, "tools: Tool names must be unique.")],
    "alternatives at a schema's root": [
        ({"tools": [{**TOOL, "input_schema": {"type": "object", "anyOf": [CLOSED]}}]}, "does not support oneOf")
    ],
    "schema of a strict answer": [
        (answered(OPEN), "output_config.format.schema: For 'object' type, 'additionalProperties' must be"),
        (answered({**CLOSED, "properties": {"a": {"type": "integer", "minimum": 1, "maximum": 2}}}),
         "For 'integer' type, properties maximum, minimum are not supported"),
        ({"tools": [{**TOOL, "strict": True}]}, "tools.0.custom: For 'object' type"),
    ],
    "tool_choice without tools": [({"tool_choice": {"type": "any"}}, "may only be specified while providing tools")],
    "limit above the model's": [
        ({"max_tokens": 64001, "model": "claude-haiku-4-5"}, "max_tokens: 64001 > 64000"),
        ({"max_tokens": 200000}, "max_tokens: 200000 > 128000"),
        ({"max_tokens": 32001, "model": "claude-opus-4-1-20250805"}, "max_tokens: 32001 > 32000"),
        ({"max_tokens": 8193, "model": "claude-3-5-haiku-20241022"}, "max_tokens: 8193 > 8192"),
    ],
    "limit of nothing": [({"max_tokens": -1}, "max_tokens: must be greater than or equal to")],
    "temperature out of bounds": [({"temperature": 1.5, "model": "claude-haiku-4-5"}, "temperature: range: 0..1")],
    "sampling at a model without it": [
        ({"temperature": 0.5}, "`temperature` is deprecated for this model."),
        ({"top_k": 5, "model": "claude-opus-4-7"}, "`top_k` is deprecated"),
    ],
    "both kinds of sampling": [
        ({"temperature": 1, "top_p": 1, "model": "claude-sonnet-4-6"}, "cannot both be specified")
    ],
    "small budget": [
        ({**BUDGET, "thinking": {"type": "enabled", "budget_tokens": 512}}, "should be greater than or equal to 1024")
    ],
    "budget above the limit": [({**BUDGET, "max_tokens": 2048}, "`max_tokens` must be greater than")],
    "budget at a model that adapts": [({**BUDGET, "model": "claude-opus-4-7"}, '"thinking.type.enabled" is not')],
    "adaptive thinking at an older model": [
        ({"thinking": {"type": "adaptive"}, "model": "claude-haiku-4-5"}, "adaptive thinking is not supported")
    ],
    "effort at a model without it": [
        ({"output_config": {"effort": "low"}, "model": "claude-haiku-4-5"}, "does not support the effort parameter")
    ],
    "forced tool with thinking": [
        ({**BUDGET, "tools": [TOOL], "tool_choice": {"type": "tool", "name": "weather"}}, "forces tool use")
    ],
    "sampling with thinking": [
        ({**BUDGET, "temperature": 0.5}, "`temperature` may only be set to 1 when thinking is enabled"),
        ({**BUDGET, "top_k": 5}, "`top_k` must be unset when thinking is enabled"),
        ({**BUDGET, "top_p": 0.5}, "`top_p` must be greater than or equal to 0.95"),
    ],
    "thinking of another vendor": [
        ({"messages": [USER, says("assistant", {**THOUGHT, "signature": signature}, text("a")), USER]},
         "messages.1.content.0: Invalid `signature` in `thinking` block")
        for signature in ("", "gateway:openai:abc", "not base64!")
    ],
    "altered thinking": [
        ({"messages": [USER, says("assistant", {**THOUGHT, "thinking": "I thought."}, USE), says("user", RESULT)]},
         "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be")
    ],
    "loop without thinking": [
        ({**BUDGET, "messages": [USER, says("assistant", USE), says("user", RESULT)], "tools": [TOOL]},
         "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`")
    ],
    "no content": [({"messages": [{"role": "user", "content": ""}]}, "messages.0: all messages must have non-empty")],
    "blank text": [
        ({"messages": [says("user", text("\n"))]}, "messages: text content blocks must contain non-whitespace text"),
        ({"messages": [*LOOP[:2], says("user", {**RESULT, "content": [text("")]})]}, "messages: text content blocks"),
        ({"system": [text("")]}, "system: text content blocks must be non-empty"),
    ],
    "id of a call": [
        ({"messages": [USER, says("assistant", {**USE, "id": "call.1"}), says("user", {**RESULT, "tool_use_id": "a"})]},
         "messages.1.content.0.tool_use.id: String should match pattern"),
    ],
    "input of a call": [
        ({"messages": [USER, says("assistant", {**USE, "input": "{}"}), says("user", RESULT)]},
         "messages.1.content.0.tool_use.input: Input should be a valid dictionary")
    ],
    "repeated id of a call": [
        ({"messages": [USER, says("assistant", USE, USE), says("user", RESULT)]}, "`tool_use` ids must be unique")
    ],
    "call without result": [
        ({"messages": [USER, says("assistant", USE), USER]}, "without `tool_result` blocks immediately after: toolu_1"),
        ({"messages": [USER, says("assistant", USE)]}, "without `tool_result` blocks immediately after: toolu_1"),
    ],
    "result without call": [
        ({"messages": [says("user", RESULT)]}, "unexpected `tool_use_id` found in `tool_result` blocks: toolu_1"),
        ({"messages": [*LOOP, says("assistant", text("a")), says("user", RESULT)]}, "messages.4.content.0: unexpected"),
    ],
    "result behind a text": [
        ({"messages": [*LOOP[:2], says("user", text("a"), RESULT)]}, "without `tool_result` blocks immediately after")
    ],
    "prefill": [({"messages": [USER, says("assistant", text("It is"))]}, "does not support assistant message prefill")],
    "blank at the end": [
        ({"messages": [USER, says("assistant", text("It is "))], "model": "claude-haiku-4-5"}, "trailing whitespace")
    ],
    "many cache markers": [
        ({"messages": [says("user", *(text("a", cache_control=MARK) for _ in range(5)))]}, "Found 5.")
    ],
    "order of cache markers": [
        ({"system": [text("a", cache_control=MARK)],
          "messages": [says("user", text("a", cache_control={**MARK, "ttl": "1h"}))]}, "must not come after")
    ],
    "blank stop sequence": [({"stop_sequences": ["\n"]}, "each stop sequence must contain non-whitespace")],
    "user with an address": [({"metadata": {"user_id": "ada@example.com"}}, "appears to contain an email address")],
}  # fmt: skip
CASES = [(rule, change, words) for rule, cases in REFUSED.items() for change, words in cases]


@pytest.fixture
def client(server: DialectServer) -> Iterator[Anthropic]:
    server.play("s", answer_with(FAKE, STORY))
    with Anthropic(api_key="sk-ant-test", base_url=server.base_url("s"), max_retries=0) as sdk:
        yield sdk


def body_of(change: Json) -> Json:
    body = {"model": "claude-sonnet-5", "max_tokens": 100, "messages": [USER], **change}
    return {name: value for name, value in body.items() if value is not ... and name != "betas"}


def post(client: Anthropic, change: Json) -> Json:
    """Sends the body as it is: the SDK would not let all of them pass."""
    headers = {"anthropic-beta": ",".join(change["betas"])} if "betas" in change else {}
    answer: Any = client.post("/v1/messages", body=body_of(change), cast_to=object, options={"headers": headers})
    answered: Json = answer
    return answered


@pytest.mark.parametrize("change", GOOD, ids=str)
def test_request__that_the_vendor_takes__answered(client: Anthropic, change: Json) -> None:
    body = body_of(change)
    sampling = {name: body.pop(name) for name in ("temperature", "top_k") if name in body}
    message: Any = client.beta.messages.create(**body, extra_body=sampling)
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]


@pytest.mark.parametrize(("rule", "change", "words"), CASES, ids=[f"{rule}-{words}" for rule, _, words in CASES])
def test_request__that_the_vendor_refuses__raised_by_the_sdk_in_its_words(
    client: Anthropic, rule: str, change: Json, words: str
) -> None:
    FAKE.whole(STORY)
    with pytest.raises(anthropic.BadRequestError) as raised:
        post(client, change)
    error: Any = raised.value.body
    assert words in error["error"]["message"]
    assert (error["type"], error["error"]["type"]) == ("error", "invalid_request_error")


def test_signature__of_an_unknown_answer__taken(client: Anthropic) -> None:
    other = {**THOUGHT, "signature": "b2Ygb3RoZXIgdGhpbmtpbmc="}
    answer = post(client, {"messages": [USER, says("assistant", other, text("a")), USER]})
    assert json.dumps(answer)
