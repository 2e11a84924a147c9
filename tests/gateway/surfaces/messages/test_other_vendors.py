"""Requests of the Messages API at every vendor but Anthropic: what only Anthropic knows does not reach them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.surfaces.messages.surface import SURFACE
from integrations.providers.base import UpstreamRequest
from integrations.providers.native import native_adapter
from tests.fakes.dialects.registry import FAKES, distinct_providers
from tests.fakes.dialects.story import ReadRequest, Story
from tests.gateway.stage import Stage, model_of
from tests.gateway.surfaces.messages.clients import chat_request, read_stream, read_whole
from tests.integrations.adapters.subject import Subject, subject_of

Json = dict[str, Any]


def _has_the_protocol(provider: str) -> bool:
    adapter = native_adapter(provider, "messages")
    return adapter is not None and (adapter.takes_own_fields or adapter.serves(model_of(provider).partition("/")[2]))


OTHERS = [provider for provider in distinct_providers() if provider in FAKES and not _has_the_protocol(provider)]
# The vendors that take Anthropic's cache marker in OpenAI's dialect (docs/providers.md#prompt-caching).
MARKED = ("openrouter", "snowflake", "databricks", "dashscope")
SEARCH: Json = {"name": "find_tools", "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}}}
WEIGH: Json = {"name": "weigh", "description": "Weighs a parcel", "input_schema": {"type": "object", "properties": {}}}
MARK = {"type": "ephemeral"}
OF_REQUESTS: Json = {
    "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
    "diagnostics": {"previous_message_id": "msg_1"},
    "inference_geo": "global",
    "speed": "standard",
    "betas": ["context-management-2025-06-27"],
    "cache_control": MARK,
}
OF_TOOLS: Json = {
    "allowed_callers": ["direct"],
    "cache_control": MARK,
    "defer_loading": True,
    "eager_input_streaming": True,
    "input_examples": [{"unit": "kg"}],
}
OF_MESSAGES = {"is_error", "clear_at", "output_config", "block_binding", "tool_reference", "provider_specific_fields"}
ONLY_ANTHROPICS = {*OF_REQUESTS, *OF_TOOLS, *OF_MESSAGES}


def body_of(model: str, of_request: Json, of_tool: Json, *, is_error: bool = True, **more: Any) -> Json:
    """Returns a request of an agent that has searched for a tool and called it."""
    found = {"type": "tool_reference", "tool_name": "weigh", "cache_control": MARK}
    result = {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no scales", "is_error": is_error}
    return {
        "model": model,
        "max_tokens": 2048,
        "thinking": {"type": "enabled", "budget_tokens": 1024, "block_binding": "none"},
        "messages": [
            {"role": "user", "content": "How heavy is it?"},
            {"role": "assistant", "content": [_call("toolu_1", "find_tools", {"query": "weight"})]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [found]}]},
            {"role": "assistant", "content": [_call("toolu_2", "weigh", {})]},
            {"role": "user", "content": [result, {"type": "text", "text": "Well?", "cache_control": MARK}]},
        ],
        "tools": [{**SEARCH, **of_tool}, {**WEIGH, **of_tool}],
        **of_request,
        **more,
    }


def _call(call_id: str, name: str, given: Json) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def names_in(value: Any) -> Iterator[str]:
    """Yields the names of all fields, and the types of all parts."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            if name == "type" and isinstance(inner, str):
                yield inner
            yield from names_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from names_in(inner)


def leaked(provider: str, body: bytes) -> set[str]:
    own = {"cache_control"} if provider in MARKED else set()
    return ONLY_ANTHROPICS.intersection(names_in(json.loads(body))) - own


def assert_searched(request: ReadRequest) -> None:
    """Asserts that the vendor reads the tools, their calls, and what the search has found."""
    assert request.tools == ("find_tools", "weigh")
    assert [call.name for call in request.calls] == ["find_tools", "weigh"]
    assert "weigh" in request.results[0][1]
    assert "no scales" in request.results[1][1]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("provider", OTHERS)
def test_request_of_an_agent__at_every_vendor__is_one_that_the_vendor_takes(
    stage: Stage, provider: str, stream: bool
) -> None:
    script = stage.play(provider, Story(text="Heavy"))
    body = body_of(model_of(provider), OF_REQUESTS, OF_TOOLS, stream=stream)

    answer = stage.gateway.client.post("/api/gateway/v1/messages", json=body, headers=stage.gateway.headers)

    assert answer.status_code == 200, answer.text
    message = read_stream(answer.content) if stream else read_whole(answer.content)
    assert "".join(block.text for block in message.content if block.type == "text") == "Heavy"
    assert "context_management: dropped" in answer.headers["x-svc-warning"]
    (request,) = stage.requests_of(provider)
    assert_searched(request)
    assert leaked(provider, script.received[0].body) == set()


@pytest.mark.parametrize("provider", OTHERS)
def test_request_of_an_agent__on_a_fallback__is_one_that_the_vendor_takes(provider: str) -> None:
    subject = subject_of(provider)
    upstream = built(subject, body_of(subject.model, OF_REQUESTS, OF_TOOLS), crosses_vendor=True)

    assert_searched(subject.read(upstream))
    assert leaked(provider, upstream.body) == set()


@given(
    provider=st.sampled_from(OTHERS),
    of_request=st.fixed_dictionaries({}, optional={name: st.just(value) for name, value in OF_REQUESTS.items()}),
    of_tool=st.fixed_dictionaries({}, optional={name: st.just(value) for name, value in OF_TOOLS.items()}),
    stream=st.booleans(),
    is_error=st.booleans(),
)
def test_request__with_any_fields_of_anthropics__is_one_that_the_vendor_takes(
    provider: str, of_request: Json, of_tool: Json, stream: bool, is_error: bool
) -> None:
    subject = subject_of(provider)
    body = body_of(subject.model, of_request, of_tool, is_error=is_error, stream=stream)

    upstream = built(subject, body)

    assert_searched(subject.read(upstream))
    assert leaked(provider, upstream.body) == set()
    named = {warning.partition(":")[0] for warning in upstream.warnings}
    assert ("context_management" in named) is ("context_management" in of_request)
    assert named.isdisjoint({*OF_TOOLS} - {"cache_control"})


def test_limit__of_a_plain_request_at_a_reasoning_model__has_the_name_that_the_model_takes() -> None:
    subject = subject_of("openai")
    for stream in (False, True):
        body = {"model": "gpt-5.5", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], "stream": stream}

        sent = json.loads(built(subject, body).body)

        assert ("max_tokens" in sent, sent["max_completion_tokens"]) == (False, 9)


def built(subject: Subject, body: Json, *, crosses_vendor: bool = False) -> UpstreamRequest:
    """Returns the request that the provider gets for a client's body, as the pipeline makes it."""
    read = SURFACE.read(json.dumps(body).encode())
    assert read.untranslatable == ()
    made = chat_request(read.body)
    request = replace(made, is_translated=read.is_translated, is_plain=read.is_plain, crosses_vendor=crosses_vendor)
    token = "ya29.canary-access-token" if subject.adapter.needs(request, subject.credentials).access_token else ""
    return subject.adapter.build_request(replace(request, access_token=token), subject.credentials)
