"""Requests for tools and reasoning that OpenAI's kind gets by the Responses API, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import anthropic
import pytest
from google import genai
from google.genai import types

from integrations.providers.usage import Usage
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import DialectServer, answer_with, fails, script_path
from tests.fakes.dialects.story import Call, ReadRequest, Story
from tests.fakes.scripted import Script, Step, raw
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.stage import integration_of
from tests.gateway.surfaces.agents import claude_code

Json = dict[str, Any]

EMPTY: Json = {"type": "object", "properties": {}}

LOOK: Any = {"name": "look", "description": "Looks at a place", "input_schema": {"type": "object", "properties": {}}}
LOOK_SCHEMA: Any = {"type": "object", "properties": {}}
CHAT_LOOK: Any = {"type": "function", "function": {"name": "look", "parameters": LOOK_SCHEMA}}
CALLED = Story(
    text="Let me look.",
    reasoning="Where is it?",
    signature="Zmlyc3Q=",
    calls=(Call("call_1", "look", {"at": "sea"}), Call("call_2", "look", {"at": "land"})),
    finish="tool_calls",
    usage=Usage(prompt_tokens=3303, completion_tokens=165, cache_read_tokens=1000, reasoning_tokens=64),
    model="gpt-5.5",
)
ANSWERED = Story(
    text="It is at sea.",
    reasoning="There.",
    signature="c2Vjb25k",
    usage=Usage(prompt_tokens=4000, completion_tokens=20),
    model="gpt-5.5",
)
PRICE: Json = {"provider": "openai", "model": "gpt-5.5", "input": "5", "output": "30", "cache_read": "0.5"}
# 2303 tokens at 5 dollars a million, 1000 of the cache at 0.5, and 165 of output at 30
# (https://developers.openai.com/api/docs/pricing).
COST_OF_CALLED = Decimal("0.016965")
CLAUDE = "anthropic/claude-sonnet-4-5"


@dataclass(frozen=True)
class Played:
    """A project whose providers follow their steps."""

    gateway: Gateway
    scripts: dict[str, Script]
    server: DialectServer

    def post(self, path: str, body: Json) -> Any:
        return self.gateway.client.post(f"/api/gateway/v1/{path}", json=body, headers=self.gateway.headers)

    def sent(self, provider: str) -> list[tuple[str, Json]]:
        """Returns the path and the body of each request that the provider received."""
        received = self.scripts[provider].received
        return [(script_path(one.path), json.loads(one.body)) for one in received]

    def read(self, provider: str) -> list[ReadRequest]:
        """Returns the requests as the provider read them. Raises AssertionError for one that it would refuse."""
        return self.server.requests_of(provider, FAKES[provider])


Play = Callable[..., Played]


@pytest.fixture
def play(service: GatewayService) -> Iterator[Play]:
    """Makes a project with these settings, whose providers follow their steps."""
    with DialectServer() as server:

        def made(settings: Json | None = None, **steps: list[Step | Story]) -> Played:
            scripts = {}
            for provider, given in steps.items():
                fake = FAKES[provider]
                ready = [answer_with(fake, step) if isinstance(step, Story) else step for step in given]
                scripts[provider] = server.play(provider, *ready)
            rows = [integration_of(FAKES[provider], server.base_url(provider)) for provider in steps]
            return Played(service.new_project(integrations=rows, routing=settings, prices=[PRICE]), scripts, server)

        yield made


def test_request_of_claude_code__over_a_reasoning_model__goes_by_responses(play: Play) -> None:
    played = play(openai=[CALLED])
    body = {
        "model": "gpt-5.5",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "hi"}],
        "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high"},
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
    }

    answer = played.post("messages", body)

    assert answer.status_code == 200, answer.text
    ((path, sent),) = played.sent("openai")
    assert path == "/v1/responses"
    assert sent == {
        "model": "gpt-5.5",
        "input": [{"role": "user", "content": "hi"}],
        "max_output_tokens": 100,
        "reasoning": {"effort": "high", "summary": "auto"},
        "tools": [{"type": "function", "name": "f", "parameters": EMPTY, "strict": False}],
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    assert answer.headers["x-svc-warning"] == "context_management: dropped, openai has no counterpart"


def test_turns_of_claude_code__begun_at_claude__go_on_over_a_reasoning_model(play: Play) -> None:
    played = play(openai=[ANSWERED])
    turns = list(claude_code.turns())

    for turn in turns:
        answer = played.post("messages", json.loads(turn.body) | {"model": "openai/gpt-5.5"})
        assert answer.status_code == 200, answer.text

    requests = played.read("openai")
    assert {path for path, _ in played.sent("openai")} == {"/v1/responses"}
    assert len(requests) == len(turns)
    assert {request.tools for request in requests} == {("Bash", "Edit", "Read")}
    assert len(requests[-1].results) == len(requests[-1].calls) >= 20
    assert requests[-1].signatures == ()


@pytest.mark.parametrize("provider", ["openai", "azure_openai"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_loop_of_tools__with_anthropics_sdk__keeps_the_reasoning(play: Play, provider: str, stream: bool) -> None:
    played = play(**{provider: [CALLED, ANSWERED]})
    history: list[Any] = [{"role": "user", "content": "Where is it?"}]
    ask = {"model": f"{provider}/gpt-5.5", "max_tokens": 4000, "tools": [LOOK], "thinking": {"type": "adaptive"}}
    base_url = f"{played.gateway.service.base_url()}/api/gateway"
    with anthropic.Anthropic(api_key=played.gateway.key, base_url=base_url, max_retries=0) as sdk:
        first = _asked(sdk, {**ask, "messages": history}, stream=stream)
        calls = [block for block in first.content if block.type == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": "blue"} for call in calls]
        history += [{"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
        last = _asked(sdk, {**ask, "messages": history}, stream=stream)

    assert [block.type for block in first.content][-3:] == ["text", "tool_use", "tool_use"]
    assert [(call.name, call.input) for call in calls] == [("look", {"at": "sea"}), ("look", {"at": "land"})]
    thoughts = [block.thinking for block in first.content if block.type == "thinking"]
    assert (thoughts, first.stop_reason) == ([CALLED.reasoning], "tool_use")
    counts = (first.usage.input_tokens, first.usage.cache_read_input_tokens, first.usage.output_tokens)
    assert counts == (2303, 1000, 165)
    assert (last.content[-1].text, last.stop_reason) == ("It is at sea.", "end_turn")
    _, again = played.read(provider)
    assert again.signatures == (CALLED.signature,)
    assert again.turns == (("user", "Where is it?"), ("assistant", "Let me look."))
    assert again.calls == CALLED.calls
    assert again.results == (("call_1", "blue"), ("call_2", "blue"))


def _asked(sdk: anthropic.Anthropic, ask: Any, *, stream: bool) -> Any:
    if not stream:
        return sdk.messages.create(**ask)
    with sdk.messages.stream(**ask) as events:
        return events.get_final_message()


@pytest.mark.parametrize("shows", [False, True], ids=["hidden", "shown"])
def test_loop_of_tools__with_googles_sdk__keeps_the_reasoning(play: Play, shows: bool) -> None:
    played = play(openai=[CALLED, ANSWERED])
    declared = types.FunctionDeclaration(name="look", parameters_json_schema={"type": "object"})
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared])],
        thinking_config=types.ThinkingConfig(thinking_level=types.ThinkingLevel.HIGH, include_thoughts=shows),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    options = types.HttpOptions(base_url=f"{played.gateway.service.base_url()}/api/gateway")
    with genai.Client(api_key=played.gateway.key, http_options=options) as sdk:
        chat = sdk.chats.create(model="openai/gpt-5.5", config=config)
        first = chat.send_message("Where is it?")
        assert first.function_calls is not None
        results: Any = [
            types.Part(
                function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": "blue"})
            )
            for call in first.function_calls
        ]
        last = chat.send_message(results)

    assert [call.args for call in first.function_calls] == [{"at": "sea"}, {"at": "land"}]
    assert last.text == "It is at sea."
    wanted = {"effort": "high"} | ({"summary": "auto"} if shows else {})
    assert [(path, sent["reasoning"]) for path, sent in played.sent("openai")] == [("/v1/responses", wanted)] * 2
    again = played.read("openai")[1]
    assert (again.signatures, again.calls) == ((CALLED.signature,), CALLED.calls)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_record__of_an_answer_by_responses__has_its_usage_and_its_cost(play: Play, stream: bool) -> None:
    played = play(openai=[CALLED])
    body = {"model": "gpt-5.5", "max_tokens": 4000, "messages": [{"role": "user", "content": "Hi"}], "tools": [LOOK]}

    record = played.gateway.record(played.post("messages", {**body, "stream": stream}))

    assert (record.prompt_tokens, record.cache_read_tokens, record.completion_tokens) == (3303, 1000, 165)
    assert (record.reasoning_tokens, record.tokens_estimated, record.is_native) == (64, False, False)
    assert Decimal(record.cost_usd) == COST_OF_CALLED
    assert (record.provider, record.outcome) == ("openai", "success")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_failover__from_anthropic__goes_by_responses(play: Play, stream: bool) -> None:
    played = play(anthropic=[fails(FAKES["anthropic"], 529, "overloaded")], openai=[CALLED])
    body = {
        "model": CLAUDE,
        "models": [CLAUDE, "openai/gpt-5.5"],
        "max_tokens": 4000,
        "messages": [{"role": "user", "content": "Hi"}],
        "thinking": {"type": "adaptive"},
        "tools": [LOOK],
        "stream": stream,
    }

    answer = played.post("messages", body)

    assert answer.status_code == 200, answer.text
    assert answer.headers["x-svc-provider"] == "openai"
    assert "tool_use" in answer.text
    ((path, _),) = played.sent("openai")
    assert path == "/v1/responses"
    played.read("openai")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_loop_of_tools__at_an_account_that_cannot_read_the_reasoning__goes_on(play: Play, stream: bool) -> None:
    error = {"message": "The encrypted content could not be verified.", "code": "invalid_encrypted_content"}
    played = play(openai=[CALLED, raw(400, json.dumps({"error": error}).encode()), ANSWERED])
    ask = {"model": "gpt-5.5", "max_tokens": 4000, "tools": [LOOK], "stream": stream}
    question = {"role": "user", "content": "Where is it?"}
    first = played.post("messages", {**ask, "messages": [question], "stream": False}).json()
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "blue"}
        for block in first["content"]
        if block["type"] == "tool_use"
    ]
    history = [question, {"role": "assistant", "content": first["content"]}, {"role": "user", "content": results}]

    answer = played.post("messages", {**ask, "messages": history})

    assert answer.status_code == 200, answer.text
    assert answer.headers["x-svc-warning"] == "messages.reasoning_details: dropped, openai cannot read them"
    assert [request.signatures for request in played.read("openai")] == [(), (CALLED.signature,), ()]
    assert played.gateway.record(answer).outcome == "success"


def test_thinking__at_an_organization_without_summaries__is_answered_without_its_text(play: Play) -> None:
    error = {
        "message": "Your organization must be verified.",
        "param": "reasoning.summary",
        "code": "unsupported_value",
    }
    played = play(openai=[raw(400, json.dumps({"error": error}).encode()), CALLED])
    body = {"model": "gpt-5.5", "max_tokens": 4000, "messages": [{"role": "user", "content": "Hi"}], "tools": [LOOK]}

    answer = played.post("messages", {**body, "thinking": {"type": "adaptive"}})

    assert answer.status_code == 200, answer.text
    assert answer.headers["x-svc-warning"] == "thinking: its text dropped, openai refuses summaries here"
    assert [sent["reasoning"] for _, sent in played.sent("openai")] == [
        {"effort": "medium", "summary": "auto"},
        {"effort": "medium"},
    ]


def test_fallback_of_a_chat_client__goes_by_responses(play: Play) -> None:
    played = play(anthropic=[fails(FAKES["anthropic"], 529, "overloaded")], openai=[CALLED])
    body = {
        "model": CLAUDE,
        "models": [CLAUDE, "openai/gpt-5.5"],
        "messages": [{"role": "user", "content": "Hi"}],
        "reasoning_effort": "high",
        "tools": [CHAT_LOOK],
    }

    answer = played.post("chat/completions", body)

    assert [call["id"] for call in answer.json()["choices"][0]["message"]["tool_calls"]] == ["call_1", "call_2"]
    ((path, sent),) = played.sent("openai")
    assert (path, sent["reasoning"]) == ("/v1/responses", {"effort": "high"})


def test_chat_completion__without_the_setting__is_forwarded_untouched(play: Play) -> None:
    played = play(openai=[CALLED])
    body = {
        "model": "gpt-5.5",
        "messages": [{"role": "user", "content": "Hi"}],
        "reasoning_effort": "high",
        "tools": [CHAT_LOOK],
    }

    answer = played.post("chat/completions", body)

    assert played.sent("openai") == [("/v1/chat/completions", body)]
    assert answer.request.content == played.scripts["openai"].received[0].body


@pytest.mark.parametrize("fields", [{}, {"reasoning_effort": "high"}])
def test_refusal_of_tools_with_reasoning__names_the_setting(play: Play, fields: dict[str, Any]) -> None:
    played = play({}, openai=[ANSWERED])
    body = {"model": "gpt-5.6", "messages": [{"role": "user", "content": "Hi"}], "tools": [CHAT_LOOK], **fields}

    answer = played.post("chat/completions", body)

    assert answer.status_code == 400
    assert "openai_responses_for_tools" in answer.json()["error"]["message"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_loop_of_tools__with_the_setting__keeps_the_reasoning_of_a_chat_client(play: Play, stream: bool) -> None:
    played = play({"openai_responses_for_tools": True}, openai=[CALLED, ANSWERED])
    history: list[Any] = [{"role": "user", "content": "Where is it?"}]
    ask: Any = {"model": "gpt-5.5", "tools": [CHAT_LOOK], "reasoning_effort": "high", "seed": 7}
    with played.gateway.openai() as sdk:
        first = _completed(sdk, {**ask, "messages": history}, stream=stream)
        results = [{"role": "tool", "tool_call_id": call.id, "content": "blue"} for call in first.tool_calls]
        history += [first.model_dump(exclude_none=True), *results]
        last = _completed(sdk, {**ask, "messages": history}, stream=stream)

    assert (first.content, [call.function.name for call in first.tool_calls]) == ("Let me look.", ["look", "look"])
    assert last.content == "It is at sea."
    again = played.read("openai")[1]
    assert (again.signatures, again.calls) == ((CALLED.signature,), CALLED.calls)
    assert {path for path, _ in played.sent("openai")} == {"/v1/responses"}


def _completed(sdk: Any, ask: Any, *, stream: bool) -> Any:
    if not stream:
        return sdk.chat.completions.create(**ask).choices[0].message
    with sdk.chat.completions.stream(**ask) as events:
        return events.get_final_completion().choices[0].message


def test_setting__changes_no_request_without_tools(play: Play) -> None:
    played = play({"openai_responses_for_tools": True}, openai=[ANSWERED])
    body = {"model": "gpt-5.5", "messages": [{"role": "user", "content": "Hi"}], "reasoning_effort": "high"}

    played.post("chat/completions", body)

    assert played.sent("openai") == [("/v1/chat/completions", body)]
