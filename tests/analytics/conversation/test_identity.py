"""A turn is new in a session unless an earlier request carried it after the same beginning."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from analytics.conversation.identity import SeenTurns
from analytics.conversation.requests import read_request
from analytics.conversation.responses import read_response


def turns(*messages: dict[str, Any]) -> Any:
    return read_request(json.dumps({"messages": messages})).turns


def answer(**message: Any) -> Any:
    return read_response(json.dumps({"choices": [{"message": {"role": "assistant", **message}}]}))


USER = {"role": "user", "content": "Hi"}


def test_seen__answer_sent_back_in_another_form__known() -> None:
    seen = SeenTurns()
    call = {"id": "1", "type": "function", "function": {"name": "w", "arguments": '{"q": 1}'}}
    seen.add(turns(USER), answer(content="Wait.", reasoning_content="Hm.", tool_calls=[call], annotations=[1]))
    back = {"type": "tool_use", "id": "2", "name": "w", "input": {"q": 1}}
    second = turns(
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Wait."}, back]},
        {"role": "tool", "content": "4"},
    )

    assert seen.add(second, ()) == 2


def test_seen__same_text_later__new() -> None:
    seen = SeenTurns()
    seen.add(turns(USER), answer(content="Hi"))

    assert seen.add(turns(USER, {"role": "assistant", "content": "Hi"}, USER), ()) == 2


def test_seen__other_beginning__all_new() -> None:
    seen = SeenTurns()
    seen.add(turns({"role": "system", "content": "a"}, USER), ())

    assert seen.add(turns({"role": "system", "content": "b"}, USER), ()) == 0


def test_seen__either_of_two_choices__known() -> None:
    seen = SeenTurns()
    choices = [{"message": {"role": "assistant", "content": text}} for text in ("a", "b")]
    seen.add(turns(USER), read_response(json.dumps({"choices": choices})))

    assert seen.add(turns(USER, {"role": "assistant", "content": "b"}, USER), ()) == 2


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text(max_size=3)), max_size=12))
def test_seen__conversation_that_grows__new_turns_together_are_the_conversation(
    messages: list[tuple[str, str]],
) -> None:
    conversation = turns(*({"role": role, "content": text} for role, text in messages))
    seen = SeenTurns()
    fresh = []

    for end in range(len(conversation) + 1):
        known = seen.add(conversation[:end], ())
        fresh += conversation[known:end]

    assert tuple(fresh) == conversation
