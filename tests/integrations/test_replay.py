"""A whole completion as chunks: the SDK puts together what the whole one says, whatever a vendor adds to it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from integrations.providers.common.replay import chunks_of
from integrations.providers.usage import Usage
from tests.integrations.adapters.assembled import as_the_sdk_does

CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
DETAIL = {"type": "reasoning.text", "text": "t", "signature": "s"}
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
MESSAGES = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": st.none() | st.text(max_size=9)},
    optional={
        "refusal": st.text(max_size=9),
        "reasoning_content": st.text(max_size=9),
        "tool_calls": st.lists(st.just(CALL), min_size=1, max_size=3),
        "reasoning_details": st.lists(st.just(DETAIL), min_size=1, max_size=3),
        "provider_specific_fields": st.just({"content": [{"type": "text"}], "odd": 1}),
        "vendor": st.sampled_from(["x", 1, [1], {"a": [{"b": 1}]}]),
    },
)


def completion(messages: list[dict[str, Any]], **more: Any) -> bytes:
    choices = [{"index": n, "message": one, "finish_reason": "stop"} for n, one in enumerate(messages)]
    return json.dumps({"id": "c", "created": 1, "model": "m", "choices": choices, **more}).encode()


def without_numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [without_numbers(one) for one in value]
    if isinstance(value, dict):
        return {name: without_numbers(one) for name, one in value.items() if name != "index"}
    return value


@given(messages=st.lists(MESSAGES, min_size=1, max_size=3), text=st.sampled_from(["x", "\ud800"]))
def test_completion__as_chunks__says_the_same(messages: list[dict[str, Any]], text: str) -> None:
    events = chunks_of(completion(messages, usage=USAGE, vendor=text), Usage())

    *chunks, last = [json.loads(event.data) for event in events]
    found = [without_numbers(as_the_sdk_does([chunk])) for chunk in chunks]
    assert found == [without_numbers(message) for message in messages]
    assert {chunk["object"] for chunk in (*chunks, last)} == {"chat.completion.chunk"}
    assert [(end["index"], end["delta"], end["finish_reason"]) for end in last["choices"]] == [
        (number, {}, "stop") for number in range(len(messages))
    ]
    assert last["usage"] == USAGE
    assert "".join(event.text for event in events) == (messages[0]["content"] or "")


def test_completion__that_states_no_usage__gets_what_was_estimated() -> None:
    *_, last = chunks_of(completion([{"role": "assistant", "content": "Hi"}]), Usage(7, 5, estimated=True))

    usage = json.loads(last.data)["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["estimated"]) == (7, 5, True)
