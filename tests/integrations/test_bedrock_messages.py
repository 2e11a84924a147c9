"""Tests messages and cache points in requests to Converse."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.providers.bedrock import ADAPTER
from tests.integrations.bedrock_exchanges import CLAUDE, KEYS, NOVA, bedrock_request
from tests.integrations.bedrock_requests import (
    CALL,
    CALLED,
    CLAUDE_3,
    LLAMA,
    OWN_PROFILE,
    PDF,
    PNG,
    RESULT,
    TOOL,
    USER,
    contents,
    native,
    warned,
)


def test_messages__blank_texts_and_neighbours__left_out_and_merged() -> None:
    assert contents(
        {"role": "system", "content": "  "},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": " \n"},
        {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "two"}]},
    ) == [("user", [{"text": "one"}, {"text": "two"}])]


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "assistant", "content": "Welcome!"}, USER],
        [{"role": "system", "content": "Be brief."}],
        [{"role": "user", "content": " "}],
    ],
)
def test_messages__not_begun_by_the_user__a_user_turn_stands_first(messages: list[dict[str, Any]]) -> None:
    roles = [role for role, content in contents(*messages) if content]
    assert roles[0] == "user"
    assert all(before != after for before, after in pairwise(roles))


def test_messages__prefill__without_white_space_at_its_end() -> None:
    assert contents(USER, {"role": "assistant", "content": "The answer is \n"})[-1] == (
        "assistant",
        [{"text": "The answer is"}],
    )


def test_messages__names_of_who_speaks__dropped_and_named_once() -> None:
    named = [{**USER, "name": "Ann"}, {"role": "assistant", "content": "Hi", "name": "Bob"}, {**USER, "name": "Ann"}]
    assert warned(messages=named) == ("messages.name: dropped, bedrock has no counterpart",)
    assert not warned(messages=[USER, CALLED, {**RESULT, "name": "look"}], tools=[TOOL])


def test_messages__instructions_in_mid_conversation__in_their_place_and_marked() -> None:
    first = [{"role": "system", "content": "Be brief."}, USER, {"role": "assistant", "content": "Yes?"}]
    later = [USER, {"role": "developer", "content": "From now on in German."}]
    before, after = native(messages=[*first, USER]), native(messages=[*first, *later])
    marked = {"text": "<system-instruction>\nFrom now on in German.\n</system-instruction>"}
    assert before["system"] == after["system"] == [{"text": "Be brief."}]
    assert after["messages"] == [*before["messages"][:2], {"role": "user", "content": [{"text": "Hi"}, marked]}]


def test_messages__instruction_between_call_and_result__behind_the_result() -> None:
    reminder = {
        "role": "system",
        "content": [{"type": "text", "text": "Hurry.", "cache_control": {"type": "ephemeral"}}],
    }
    (_, _, (role, content)) = contents(USER, CALLED, reminder, RESULT, tools=[TOOL])
    assert role == "user"
    assert [next(iter(block)) for block in content] == ["toolResult", "text", "cachePoint"]


def test_cache_breakpoint__of_openais__a_cache_point() -> None:
    marked = {"type": "text", "text": "Long.", "prompt_cache_breakpoint": {"mode": "explicit"}}
    lasting = {"type": "text", "text": "Longer.", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}}
    assert contents({"role": "user", "content": [marked, lasting]})[0][1] == [
        {"text": "Long."},
        {"cachePoint": {"type": "default"}},
        {"text": "Longer."},
        {"cachePoint": {"type": "default", "ttl": "1h"}},
    ]


def test_cache_control__marker__cache_point_behind_what_it_marks() -> None:
    marker = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    fields: dict[str, Any] = {
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "Long.", **marker}]},
            {"role": "user", "content": [{"type": "text", "text": "one", **marker}, {"type": "text", "text": "two"}]},
        ],
        "tools": [{**TOOL, **marker}],
    }
    point = {"cachePoint": {"type": "default", "ttl": "1h"}}
    body = native(**fields)
    assert body["system"] == [{"text": "Long."}, point]
    assert body["messages"][0]["content"] == [{"text": "one"}, point, {"text": "two"}]
    assert body["toolConfig"]["tools"][-1] == point
    nova = native(NOVA, **fields)
    assert nova["system"][-1] == {"cachePoint": {"type": "default"}}
    assert len(nova["toolConfig"]["tools"]) == 1
    for model in (CLAUDE_3, LLAMA):
        assert "cachePoint" not in json.dumps(native(model, **fields))
        assert not warned(model, **fields)
    assert native(OWN_PROFILE, **fields)["system"][-1] == point


def test_cache_control__on_calls_and_results__cache_point_behind_them() -> None:
    marker = {"cache_control": {"type": "ephemeral"}}
    marked = {**CALLED, "tool_calls": [{**CALL, **marker}]}
    point = {"cachePoint": {"type": "default"}}
    _, (_, assistant), (_, results) = contents(USER, marked, {**RESULT, **marker}, tools=[TOOL])
    assert assistant[1:] == results[1:] == [point]
    assert "toolUse" in assistant[0]
    assert "toolResult" in results[0]


def test_cache_control__on_a_part_of_a_result__cache_point_behind_the_result() -> None:
    part = {"type": "text", "text": "found", "cache_control": {"type": "ephemeral"}}
    _, _, (_, content) = contents(USER, CALLED, {**RESULT, "content": [part]}, tools=[TOOL])
    assert [next(iter(block)) for block in content] == ["toolResult", "cachePoint"]


def test_messages__parts_in_converses_own_words__passed_on() -> None:
    guarded = {"guardContent": {"text": {"text": "Tokyo", "qualifiers": ["grounding_source"]}}}
    point = {"cachePoint": {"type": "default"}}
    found = {"searchResult": {"source": "s", "title": "t", "content": [{"text": "x"}]}}

    def part(block: dict[str, Any]) -> dict[str, Any]:
        return {"type": next(iter(block)), **block}

    parts = [part(guarded), part(point), {"type": "text", "text": "?"}]
    assert contents({"role": "user", "content": parts}) == [("user", [guarded, point, {"text": "?"}])]
    answered = {**RESULT, "content": [part({"json": {"a": 1}}), part(found)]}
    _, _, (_, (result,)) = contents(USER, CALLED, answered, tools=[TOOL])
    assert result["toolResult"]["content"] == [{"json": {"a": 1}}, found]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def test_messages__ids_of_calls_used_again__distinct_and_answered() -> None:
    def looped(call_id: str) -> list[dict[str, Any]]:
        call = {"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        result = {"role": "tool", "tool_call_id": call_id, "content": "ok"}
        return [{"role": "assistant", "content": None, "tool_calls": [call]}, result]

    turns = [{"role": "user", "content": "hi"}, *looped("call_0"), *looped("call_0"), *looped("x" * 64), *looped("")]
    messages = native(CLAUDE, messages=[*turns, *looped("x" * 64)], tools=[TOOL])["messages"]
    called = [message["content"][0]["toolUse"]["toolUseId"] for message in messages[1::2]]
    assert [message["content"][0]["toolResult"]["toolUseId"] for message in messages[2::2]] == called
    assert len(set(called)) == 5
    assert max(len(call_id) for call_id in called) <= 64


def test_messages__thinking_and_nothing_behind_it__left_out() -> None:
    details = [{"type": "reasoning.text", "text": "hm", "signature": "s", "format": "anthropic-claude-v1", "index": 0}]
    user = {"role": "user", "content": "hi"}
    thought = {"role": "assistant", "content": "", "reasoning_details": details}
    assert [message["role"] for message in native(CLAUDE, messages=[user, thought, user])["messages"]] == ["user"]


PARTS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=12)),
    st.just({"type": "image_url", "image_url": {"url": PNG}}),
    st.builds(lambda name: {"type": "file", "file": {"filename": name, "file_data": PDF}}, st.text(max_size=12)),
)
TURNS = st.one_of(
    st.builds(lambda parts: {"role": "user", "content": parts}, st.lists(PARTS, max_size=3)),
    st.builds(lambda text: {"role": "assistant", "content": text}, st.text(max_size=12)),
    st.builds(
        lambda call_id, arguments: {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call_id, "function": {"name": "look", "arguments": json.dumps(arguments)}}],
        },
        st.text(max_size=80),
        st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=3),
    ),
    st.builds(
        lambda call_id, text: {"role": "tool", "tool_call_id": call_id, "content": text},
        st.text(max_size=80),
        st.text(max_size=12),
    ),
)


@settings(max_examples=150, deadline=None)
@given(turns=st.lists(TURNS, min_size=1, max_size=6), model=st.sampled_from([CLAUDE, NOVA, LLAMA, OWN_PROFILE]))
def test_messages__anything__valid_and_by_the_dialects_rules(turns: list[dict[str, Any]], model: str) -> None:
    body = native(model, messages=turns, tools=[TOOL])
    messages = body["messages"]
    assert messages[0]["role"] == "user"
    assert all(before["role"] != after["role"] for before, after in pairwise(messages))
    names = []
    for message in messages:
        assert message["content"]
        for block in message["content"]:
            assert "text" not in block or block["text"].strip()
            names += [block["document"]["name"]] if "document" in block else []
        if any("document" in block for block in message["content"]):
            assert any("text" in block for block in message["content"])
    assert len(set(names)) == len(names)
    json.loads(ADAPTER.build_request(bedrock_request(model, messages=turns, tools=[TOOL]), KEYS).body)
