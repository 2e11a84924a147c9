"""Tests messages and cache points in requests to Converse."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.providers.bedrock import ADAPTER
from tests.integrations.bedrock_exchanges import CLAUDE, KEYS, NOVA, bedrock_request
from tests.integrations.bedrock_requests import (
    LLAMA,
    OWN_PROFILE,
    PDF,
    PNG,
    TOOL,
    native,
)
from tests.night import examples

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


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


@settings(max_examples=examples(40, 150), deadline=None)
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
