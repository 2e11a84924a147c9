"""Tests thinking, broken answers and errors of Mistral, whole and streamed."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.providers.mistral import ADAPTER
from tests.integrations.adapters.assembled import assembled
from tests.integrations.exchanges import chat_request, chunk, completion, decoded, run, sse, translator

REQUEST = chat_request("magistral-medium-latest")


def think(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}], **more}


def answered(content: Any, finish: str = "stop", **usage: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}
    body = completion(choices=[choice])
    body["usage"].update(usage)
    answer: dict[str, Any] = json.loads(ADAPTER.parse_response(REQUEST, json.dumps(body).encode()).body)
    return answer


def streamed(*chunks: dict[str, Any]) -> dict[str, Any]:
    events = run(translator("mistral"), [sse(*chunks)])
    return assembled(decoded(events))


@given(
    st.lists(st.one_of(st.text(min_size=1).map(lambda text: [think(text)]), st.text(min_size=1)), max_size=8),
    st.lists(st.integers(0, 4000), max_size=8),
)
def test_stream__any_mix_cut_anywhere__nothing_lost(contents: list[Any], cuts: list[int]) -> None:
    data = sse(*(chunk({"content": content}) for content in contents), chunk({}, finish="stop"))
    borders = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    pieces = [data[a:b] for a, b in pairwise(borders)]
    message = assembled(decoded(run(translator("mistral"), pieces)))["message"]
    thoughts = [content[0]["thinking"][0]["text"] for content in contents if isinstance(content, list)]
    assert (message["content"] or "") == "".join(content for content in contents if isinstance(content, str))
    assert message.get("reasoning_content", "") == "".join(thoughts)
    assert "".join(detail["text"] for detail in message.get("reasoning_details", ())) == "".join(thoughts)


REASONS = {"stop": "stop", "length": "length", "model_length": "length", "tool_calls": "tool_calls"}


@pytest.mark.parametrize("reason", REASONS)
def test_reason__documented__one_that_clients_know(reason: str) -> None:
    assert answered("Hal", reason)["choices"][0]["finish_reason"] == REASONS[reason]
    assert streamed(chunk({"content": "Hal"}), chunk({}, finish=reason))["finish_reason"] == REASONS[reason]
