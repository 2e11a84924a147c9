"""Tests messages in requests to Mistral: contents, order, ids of calls, and the reasoning of earlier answers."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from integrations.providers.mistral.messages import CallIds, is_call_id
from tests.integrations.mistral_requests import SMALL, USER, built, called, result


def messages_of(*messages: dict[str, Any], model: str = SMALL, **fields: Any) -> list[dict[str, Any]]:
    converted: list[dict[str, Any]] = built(model, messages=list(messages), **fields)["messages"]
    return converted


def test_call_ids__foreign__the_same_in_call_and_result_and_next_turn() -> None:
    first = messages_of(USER, called("call_abc"), result("call_abc"))
    call_id = first[1]["tool_calls"][0]["id"]
    assert is_call_id(call_id)
    assert first[2]["tool_call_id"] == call_id
    later = messages_of(USER, called("call_abc"), result("call_abc"), {"role": "assistant", "content": "x"}, USER)
    assert later[1]["tool_calls"][0]["id"] == call_id


def test_call_ids__none_at_all__still_good_ones() -> None:
    calls = [{"type": "function", "function": {"name": "ping", "arguments": {"a": 1}}} for _ in range(2)]
    (_, message) = messages_of(USER, {"role": "assistant", "tool_calls": calls})
    ids = [call["id"] for call in message["tool_calls"]]
    assert len(set(ids)) == 2
    assert all(map(is_call_id, ids))


@given(st.lists(st.text(max_size=30), max_size=30))
def test_call_ids__any__well_formed_stable_and_distinct(given_ids: list[str]) -> None:
    ids = CallIds(iter(given_ids))
    new_ids = {call_id: ids.of(call_id) for call_id in given_ids}
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", one) for one in new_ids.values())
    assert len(set(new_ids.values())) == len(new_ids)
    assert {call_id: ids.of(call_id) for call_id in given_ids} == new_ids
    assert all(new_ids[call_id] == call_id for call_id in new_ids if is_call_id(call_id))


def test_call_ids__made_one_is_taken__another_is_made() -> None:
    call_id = CallIds(iter(())).of("call_1")
    assert CallIds(iter((call_id,))).of("call_1") not in ("call_1", call_id)
