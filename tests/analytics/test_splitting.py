"""What is remembered of a conversation changes nothing of what its requests are divided into."""

from __future__ import annotations

import dataclasses
import json
import uuid
from typing import Any

import pytest

from analytics.shipper.splitting import Divided, divided
from analytics.shipper.texts import MAX_CHARACTERS, prompt_text

_TURNS = [
    {"role": role, "content": f"{role} {number} {word} " * 120}
    for number, (role, word) in enumerate(
        [("system", "granite"), ("user", "Straße"), ("assistant", "用户"), ("user", "fine"), ("assistant", "été")]
    )
]


def _body(messages: list[Any], behind: str = "", **before: Any) -> bytes:
    head = "".join(f'"{name}": {json.dumps(value)}, ' for name, value in before.items())
    return f'{{{head}"messages": {json.dumps(messages, ensure_ascii=False)}{behind}}}'.encode()


def _parts(body: bytes, *conversation: str) -> dict[str, Any]:
    found = divided(body, *conversation)
    assert found is not None
    return {"texts": found.texts(), **_without_latest(found)}


def _without_latest(found: Divided) -> dict[str, Any]:
    return {one.name: getattr(found, one.name) for one in dataclasses.fields(found) if one.name != "latest"}


@pytest.mark.parametrize(
    "later",
    [
        _body(_TURNS[:3]),
        _body(_TURNS, ', "temperature": 0.2'),
        _body([*_TURNS[:2], {"role": "user", "content": "another question " * 300}, _TURNS[3]]),
        _body(_TURNS, model="another"),
        _body(_TURNS, f', "messages": {json.dumps(_TURNS[1:3])}'),
        _body([*_TURNS[:3], {"role": "user", "content": "long " * (MAX_CHARACTERS // 4)}, *_TURNS[3:]]),
        _body(_TURNS[:1], f', "metadata": {json.dumps(_TURNS)}'),
    ],
    ids=["the-same", "grown", "changed", "other-beginning", "two-lists", "cut", "shorter"],
)
def test_divided__after_another_request_of_the_conversation__as_without_it(later: bytes) -> None:
    conversation = str(uuid.uuid4())
    divided(_body(_TURNS[:3]), conversation)

    again = _parts(later, conversation)

    assert again == _parts(later, str(uuid.uuid4()))
    texts = again["texts"]
    assert tuple(text.id for text in texts) == again["ids"]
    assert b"".join([*(text.prompt for text in texts), again["prompt"]]) == prompt_text(later)


def test_divided__repeated_history__looks_at_the_new_messages_alone() -> None:
    conversation = str(uuid.uuid4())
    divided(_body(_TURNS[:3]), conversation)

    found = divided(_body(_TURNS), conversation)

    assert found is not None
    assert found.texts()[-len(found.latest) :] == found.latest
    assert len(found.latest) < len(found.ids)


def test_divided__rest_that_is_no_json__stored_whole() -> None:
    conversation = str(uuid.uuid4())
    divided(_body(_TURNS[:3]), conversation)
    assert divided(_body(_TURNS[:3])[:-1], conversation) is None
