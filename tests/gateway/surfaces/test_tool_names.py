"""Names of tools that a client's protocol allows and not every vendor takes: of 65 to 128 characters in the Messages
API, with dots and colons in the Gemini API."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.surfaces.gemini.surface import GeminiSurface
from gateway.surfaces.messages.surface import SURFACE
from gateway.surfaces.responses.tools import Origin, Toolbox
from gateway.surfaces.tool_names import fit_names, fitted, restore_names
from tests.fakes.dialects.story import Call, Story
from tests.gateway.cases.readers import read_answer
from tests.gateway.stage import Stage, model_of
from tests.gateway.surfaces.messages.clients import REQUEST_ID

Json = dict[str, Any]

LONG = "mcp__" + "warehouse_" * 7 + "stock"
SHORT = "mcp__warehouse_warehouse_warehouse_warehouse_warehouse__7234d3d3"
DOTTED, UNDERSCORED = "depot.stock:read", "depot_stock_read"
SCHEMA: Json = {"type": "object", "properties": {"at": {"type": "string"}}}
AT_SEA: Json = {"at": "sea"}
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
NAMES = st.one_of(
    st.text(st.sampled_from("ab._:-ä"), min_size=1, max_size=4),
    st.text(st.sampled_from("ab"), min_size=1, max_size=2).map(lambda end: "tool_" * 16 + end),
    st.text(min_size=1, max_size=128),
)


def of_messages(model: str, **more: Any) -> Json:
    """Returns a request whose model has found the tool by a search, and called it."""
    found = {"type": "tool_reference", "tool_name": LONG}
    return {
        "model": model,
        "max_tokens": 64,
        "messages": [
            {"role": "user", "content": "Where is it?"},
            {"role": "assistant", "content": [use("toolu_1", "look", {})]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [found]}]},
            {"role": "assistant", "content": [use("toolu_2", LONG, AT_SEA)]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_2", "content": "blue"}]},
        ],
        "tools": [{"name": name, "input_schema": SCHEMA} for name in (LONG, "look")],
        "tool_choice": {"type": "tool", "name": LONG},
        **more,
    }


def use(call_id: str, name: str, given: Json) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def of_gemini(name: str) -> Json:
    called = {"functionCall": {"name": name, "args": AT_SEA}}
    result = {"functionResponse": {"name": name, "response": {"output": "blue"}}}
    return {
        "contents": [
            {"role": "user", "parts": [{"text": "Where is it?"}]},
            {"role": "model", "parts": [called]},
            {"role": "user", "parts": [result]},
        ],
        "tools": [{"functionDeclarations": [{"name": one, "parameters": SCHEMA} for one in (name, "look")]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [name]}},
    }


def calling(name: str) -> Story:
    return Story(calls=(Call("callAAAA1", name, AT_SEA),), finish="tool_calls")


def messages_calls(stage: Stage, body: Json) -> list[tuple[str, Json]]:
    """Returns the calls that a client of the Messages API reads."""
    answer = stage.gateway.client.post("/api/gateway/v1/messages", json=body, headers=stage.gateway.headers)
    assert answer.status_code == 200, answer.text
    return [(call["name"], json.loads(call["arguments"])) for call in read_answer("messages", answer).calls]


def gemini_calls(stage: Stage, model: str, name: str, *, stream: bool) -> list[tuple[str, Json]]:
    """Returns the calls that a client of the Gemini API reads."""
    method = "streamGenerateContent" if stream else "generateContent"
    url = f"/api/gateway/v1beta/models/{model}:{method}"
    answer = stage.gateway.client.post(url, json=of_gemini(name), headers=stage.gateway.headers)
    assert answer.status_code == 200, answer.text
    events = answer.json() if stream else [answer.json()]
    parts = [part for one in events for part in one["candidates"][0]["content"]["parts"]]
    return [(part["functionCall"]["name"], part["functionCall"]["args"]) for part in parts if "functionCall" in part]


@STREAMS
@pytest.mark.parametrize("provider", ["openai", "mistral", "bedrock", "google", "groq"])
def test_long_name__of_the_messages_api__is_short_for_the_vendor_and_whole_for_the_client(
    stage: Stage, provider: str, stream: bool
) -> None:
    script = stage.play(provider, calling(SHORT))

    assert messages_calls(stage, of_messages(model_of(provider), stream=stream)) == [(LONG, AT_SEA)]

    (request,) = stage.requests_of(provider)
    assert request.tools == (SHORT, "look")
    assert [call.name for call in request.calls] == ["look", SHORT]
    assert request.tool_choice == f"function:{SHORT}"
    assert SHORT in request.results[0][1]
    assert LONG.encode() not in script.received[0].body


@STREAMS
@pytest.mark.parametrize("provider", ["openai", "mistral", "bedrock", "anthropic"])
@pytest.mark.parametrize(("name", "taken"), [(LONG, SHORT), (DOTTED, UNDERSCORED)], ids=["long", "dotted"])
def test_name__of_the_gemini_api__is_one_that_the_vendor_takes_and_the_clients_own_in_the_answer(
    stage: Stage, name: str, taken: str, provider: str, stream: bool
) -> None:
    script = stage.play(provider, calling(taken))

    assert gemini_calls(stage, model_of(provider), name, stream=stream) == [(name, AT_SEA)]

    (request,) = stage.requests_of(provider)
    assert (request.tools, request.tool_choice) == ((taken, "look"), f"function:{taken}")
    assert [call.name for call in request.calls] == [taken]
    assert name.encode() not in script.received[0].body


@STREAMS
def test_names__where_the_provider_speaks_the_clients_protocol__stay(stage: Stage, stream: bool) -> None:
    claude = stage.play("anthropic", calling(LONG))
    stage.play("google", calling(DOTTED))
    body = of_messages(model_of("anthropic"), stream=stream)

    (call,) = messages_calls(stage, body)

    assert call == (LONG, AT_SEA)
    assert json.loads(claude.received[0].body)["tools"] == body["tools"]
    assert gemini_calls(stage, model_of("google"), DOTTED, stream=stream) == [(DOTTED, AT_SEA)]
    (request,) = stage.requests_of("google")
    assert request.tools == (DOTTED, "look")


def test_blocks_of_anthropics_own__in_a_translated_request__name_the_tool_as_the_request_does() -> None:
    reference = {"type": "tool_reference", "tool_name": LONG}
    searched = {"type": "server_tool_use", "id": "srv_1", "name": "tool_search_tool_regex", "input": {"name": LONG}}
    found = {
        "type": "tool_search_tool_result",
        "tool_use_id": "srv_1",
        "content": {"type": "tool_search_tool_search_result", "tool_references": [reference]},
    }
    blocks = [searched, found, use("toolu_1", LONG, AT_SEA)]
    body = of_messages("anthropic/claude-sonnet-4-5")
    body["messages"][1:] = [{"role": "assistant", "content": blocks}, {"role": "user", "content": "Go on"}]

    request = SURFACE.read(json.dumps(body).encode())
    assistant = json.loads(request.body)["messages"][1]
    sent = assistant["provider_specific_fields"]["content"]
    completion = {"choices": [{"message": assistant, "finish_reason": "tool_calls"}]}
    answer = json.loads(SURFACE.answer(request, json.dumps(completion).encode(), REQUEST_ID))

    assert sent[0] == searched
    assert sent[1]["content"]["tool_references"] == [{**reference, "tool_name": SHORT}]
    assert (sent[2]["name"], assistant["tool_calls"][0]["function"]["name"]) == (SHORT, SHORT)
    assert answer["content"] == blocks


def test_result_of_no_call__in_the_gemini_api__is_of_the_function_that_the_tools_define() -> None:
    body = of_gemini(DOTTED)
    del body["contents"][1]

    request = GeminiSurface("groq/llama-3.3-70b-versatile").read(json.dumps(body).encode())

    chat = json.loads(request.body)
    assert [one["name"] for one in chat["messages"] if one["role"] == "tool"] == [UNDERSCORED]
    assert chat["tools"][0]["function"]["name"] == UNDERSCORED


class _Function:
    def __init__(self, name: str) -> None:
        self.name: str | None = name


class _Call:
    def __init__(self, name: str) -> None:
        self.function = _Function(name)


class _Answer:
    """A message that calls every tool of a request."""

    def __init__(self, chat: Json) -> None:
        self.tool_calls = [_Call(tool["function"]["name"]) for tool in chat["tools"]]
        self.provider_specific_fields: Json | None = None


def chat_with(names: list[str]) -> Json:
    """Returns a chat completion whose tools have these names and have all been called."""
    calls = [{"id": f"call_{n}", "type": "function", "function": {"name": name}} for n, name in enumerate(names)]
    return {
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": None, "tool_calls": calls}],
        "tools": [{"type": "function", "function": {"name": name}} for name in names],
    }


@given(names=st.lists(NAMES, min_size=1, max_size=8, unique=True))
def test_names__of_any_tools__are_told_apart_and_come_back(names: list[str]) -> None:
    chat, again = chat_with(names), chat_with(names)

    own = fit_names(chat)
    fit_names(again)
    answer = _Answer(chat)
    made = [call.function.name for call in answer.tool_calls]
    restore_names(answer, own)

    assert chat == again
    assert len(set(made)) == len(names)
    assert all(NAME.fullmatch(name or "") for name in made)
    assert [name for name in names if NAME.fullmatch(name)] == [a for a, b in zip(names, made, strict=True) if a == b]
    assert [call.function.name for call in answer.tool_calls] == names
    assert [call["function"]["name"] for call in chat["messages"][1]["tool_calls"]] == made


@given(names=st.lists(NAMES, min_size=1, max_size=8, unique=True))
def test_names__of_any_functions_of_the_responses_api__are_told_apart_and_come_back(names: list[str]) -> None:
    toolbox = Toolbox.of({"tools": [{"type": "function", "name": name} for name in names]})

    assert all(NAME.fullmatch(name) for name in toolbox.functions)
    assert [toolbox.origin_of(name) for name in toolbox.functions] == [Origin("function", name) for name in names]


def test_name__that_several_tools_would_get__ends_in_digits_for_all_but_the_first() -> None:
    taken = {UNDERSCORED}

    first = fitted(DOTTED, taken)
    second = fitted(DOTTED, {*taken, first})

    assert len({UNDERSCORED, first, second}) == 3
    assert first.startswith(f"{UNDERSCORED}_")
