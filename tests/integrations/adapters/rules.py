"""The requests that each vendor accepts: by the types of its official SDK, and by the rules in its documentation and
its error messages."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from anthropic.types.beta import BetaContentBlockParam, BetaMessageParam, BetaToolUnionParam
from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from botocore.model import ListShape, Shape, StructureShape
from botocore.session import Session
from botocore.validate import ParamValidator
from google.genai import types
from openai.types.chat import completion_create_params
from pydantic import TypeAdapter

from tests.integrations import cohere_sdk, mistral_sdk

Json = dict[str, Any]


def assert_taken(provider: str, body: Mapping[str, Any]) -> None:
    RULES.get(provider, _openai)(json.loads(json.dumps(body)))


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _openai(body: Json) -> None:
    kind = "Streaming" if body.get("stream") else "NonStreaming"
    # OpenAI takes a null for an absent field, although the SDK's types do not allow it everywhere.
    present = {name: value for name, value in body.items() if value is not None}
    _adapter(getattr(completion_create_params, f"CompletionCreateParams{kind}")).validate_python(present)


# The following rules are Anthropic's: https://docs.anthropic.com/en/api/messages


def _anthropic(body: Json) -> None:
    _adapter(MessageCreateParamsStreaming if body.get("stream") else MessageCreateParamsNonStreaming).validate_python(
        body
    )
    _check_turns(body["messages"])
    for message in body["messages"]:
        _adapter(BetaMessageParam).validate_python(message)
        blocks = _blocks(message["content"])
        inner = [part for block in blocks for part in _blocks(block.get("content") or [])]
        for block in [*blocks, *inner]:
            _adapter(BetaContentBlockParam).validate_python(block)
            assert block["type"] != "text" or block["text"].strip(), "text content blocks must be non-empty"
        assert blocks[-1]["type"] not in ("thinking", "redacted_thinking"), "the final block cannot be thinking"
    _check_calls([_calls_of_anthropic(message) for message in body["messages"]], r"[a-zA-Z0-9_-]+")
    for tool in body.get("tools", ()):
        _adapter(BetaToolUnionParam).validate_python(tool)
        assert "type" in tool or tool["input_schema"]["type"] == "object"
    assert body.get("tools") or "tool_choice" not in body
    assert all(text["text"].strip() for text in _blocks(body.get("system", [])))
    assert all(text.strip() for text in body.get("stop_sequences", ()))
    assert 0 <= body.get("temperature", 1) <= 1
    assert "@" not in str(body.get("metadata"))
    thinking = body.get("thinking") or {}
    if thinking.get("type") == "enabled":
        assert 1024 <= thinking["budget_tokens"] < body["max_tokens"]
        assert body.get("tool_choice", {}).get("type") not in ("any", "tool")
        assert (body.get("temperature", 1), body.get("top_k")) == (1, None)


def _blocks(content: Any) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _calls_of_anthropic(message: Json) -> tuple[list[str], list[str]]:
    blocks = _blocks(message["content"])
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert all(block["type"] == "tool_result" for block in blocks[: len(results)]), "results stand first"
    return [block["id"] for block in blocks if block["type"] == "tool_use"], results


def _check_turns(turns: list[Json]) -> None:
    assert turns
    assert all(turn["content"] for turn in turns)
    assert all(one["role"] != next_one["role"] for one, next_one in pairwise(turns))
    content = turns[-1]["content"]
    last = content if isinstance(content, str) else content[-1].get("text", "")
    assert turns[-1]["role"] != "assistant" or last == last.rstrip(), "must not end with trailing whitespace"


def _check_calls(turns: list[tuple[list[str], list[str]]], pattern: str) -> None:
    """Asserts that every call has its own id and gets its result in the next turn, and that no other turn has
    results."""
    ids = [name for calls, _ in turns for name in calls]
    assert len(set(ids)) == len(ids), "ids must be unique"
    assert all(re.fullmatch(pattern, name) for name in ids)
    for (calls, _), (_, results) in pairwise([([], []), *turns, ([], [])]):
        assert sorted(calls) == sorted(results)


# The following rules are Bedrock's, from the service model of Converse:
# https://docs.aws.amazon.com/bedrock/latest/APIReference/


def _bedrock(body: Json) -> None:
    shape = _converse()
    report = ParamValidator().validate({"modelId": "m", **_with_bytes(body)}, shape)
    assert not report.has_errors(), report.generate_report()
    _check_constraints(body, shape)
    messages = body["messages"]
    assert messages[0]["role"] == "user"
    _check_turns(messages)
    for message in messages:
        content = message["content"]
        assert not any("document" in block for block in content) or any("text" in block for block in content)
        assert "reasoningContent" not in content[-1]
    calls = [_calls_of_bedrock(message) for message in messages]
    _check_calls(calls, r"[a-zA-Z0-9_.:-]{1,64}")
    offered = body.get("toolConfig", {}).get("tools", [])
    assert offered or not any(calls_and_results != ([], []) for calls_and_results in calls)
    assert all(tool["toolSpec"]["inputSchema"]["json"]["type"] == "object" for tool in offered if "toolSpec" in tool)
    assert all(text.strip() for text in _texts(messages))
    names = list(_named(messages, "document"))
    assert len(set(names)) == len(names)


@cache
def _converse() -> StructureShape:
    shape = Session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape
    assert isinstance(shape, StructureShape)
    return shape


def _calls_of_bedrock(message: Json) -> tuple[list[str], list[str]]:
    content = message["content"]
    results = [block["toolResult"]["toolUseId"] for block in content if "toolResult" in block]
    # A cache point belongs to the block before it, which may be a result.
    blocks = [block for block in content if "cachePoint" not in block]
    assert all("toolResult" in block for block in blocks[: len(results)])
    return [block["toolUse"]["toolUseId"] for block in content if "toolUse" in block], results


def _with_bytes(value: Any) -> Any:
    """Returns the value with binary members, which are base64 on the wire, as bytes, which botocore takes."""
    if isinstance(value, dict):
        return {
            name: b64decode(item) if name in ("bytes", "redactedContent") else _with_bytes(item)
            for name, item in value.items()
        }
    return [_with_bytes(item) for item in value] if isinstance(value, list) else value


def _check_constraints(value: Any, shape: Shape) -> None:
    """Asserts the patterns, lengths and bounds that botocore leaves to the service."""
    limits = shape.metadata
    if isinstance(value, str) and shape.type_name == "string":
        assert re.fullmatch(limits.get("pattern", "(?s).*"), value), (shape.name, value)
        assert limits.get("min", 0) <= len(value) <= limits.get("max", 1 << 40), (shape.name, value)
        assert value in (limits.get("enum") or [value])
    elif isinstance(value, (int, float)):
        assert limits.get("min", value) <= value <= limits.get("max", value), (shape.name, value)
    elif isinstance(shape, ListShape):
        assert len(value) <= limits.get("max", 1 << 40)
        for item in value:
            _check_constraints(item, shape.member)
    elif isinstance(shape, StructureShape) and not shape.is_document_type:
        for name, item in value.items():
            _check_constraints(item, shape.members[name])


def _texts(messages: list[Json]) -> Iterator[str]:
    for message in messages:
        for block in message["content"]:
            inner = block["toolResult"]["content"] if "toolResult" in block else [block]
            yield from (one["text"] for one in inner if "text" in one)


def _named(messages: list[Json], kind: str) -> Iterator[str]:
    for message in messages:
        for block in message["content"]:
            inner = block["toolResult"]["content"] if "toolResult" in block else [block]
            yield from (one[kind]["name"] for one in inner if kind in one)


# The following rules are Google's: https://ai.google.dev/api/generate-content, …/gemini-api/docs/function-calling


def _google(body: Json) -> None:
    config, contents = body.get("generationConfig", {}), body["contents"]
    for kind, value in (
        (list[types.Content], contents),
        (types.Content, body.get("systemInstruction", {})),
        (list[types.Tool], body.get("tools", [])),
        (types.ToolConfig, body.get("toolConfig", {})),
        (types.GenerationConfig, config),
    ):
        _adapter(kind).validate_json(json.dumps(value))
    known = {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "serviceTier"}
    assert body.keys() <= known
    assert all(one["role"] != next_one["role"] for one, next_one in pairwise(contents))
    for content, answer in pairwise([*contents, {"parts": []}]):
        assert content["parts"]
        # Google requires as many results as calls, in their order.
        called = [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
        results = [part["functionResponse"]["name"] for part in answer["parts"] if "functionResponse" in part]
        assert not called or called == results
    assert -(2**31) <= config.get("seed", 0) < 2**31
    assert all(config.get("stopSequences", [])), "a stop sequence is empty"
    assert not {"thinkingBudget", "thinkingLevel"} <= config.get("thinkingConfig", {}).keys()
    assert "logprobs" not in config or config.get("responseLogprobs") is True


def _cohere(body: Json) -> None:
    cohere_sdk.assert_accepted(body)
    for message in body["messages"][:-1]:
        assert message["content"] if message["role"] in ("user", "system") else True
        assert message["role"] != "assistant" or message.get("content") or message.get("tool_calls")
    assert all(body.get("stop_sequences", []))


def _mistral(body: Json) -> None:
    mistral_sdk.assert_accepted(body)
    messages = body["messages"]
    for message in messages:
        calls = message.get("tool_calls") or []
        assert message["role"] != "assistant" or message.get("content") or calls
        ids = [call["id"] for call in calls]
        assert len(set(ids)) == len(ids)
        assert all(re.fullmatch(r"[a-zA-Z0-9]{9}", name) for name in ids)
    assert all(after["role"] in ("tool", "assistant") for one, after in pairwise(messages) if one["role"] == "tool")
    assert messages[-1]["role"] != "assistant" or messages[-1].get("prefix") or messages[-1].get("tool_calls")


RULES: dict[str, Callable[[Json], None]] = {
    "anthropic": _anthropic,
    "bedrock": _bedrock,
    "google": _google,
    "google_vertex": _google,
    "cohere": _cohere,
    "mistral": _mistral,
}
