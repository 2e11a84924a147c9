from __future__ import annotations

from collections.abc import Sequence

import msgspec

from prompts.content.messages import INSTRUCTION_ROLES, PromptMessage

_BETWEEN_TEXTS = "\n\n"
_encode = msgspec.json.Encoder().encode


def instructions_of(messages: Sequence[PromptMessage]) -> str:
    return _joined([message for message in messages if message["role"] in INSTRUCTION_ROLES])


def turns_of(messages: Sequence[PromptMessage]) -> list[PromptMessage]:
    return [message for message in messages if message["role"] not in INSTRUCTION_ROLES]


def text_of(messages: Sequence[PromptMessage]) -> str:
    return _joined(messages)


def with_turns(turns: Sequence[PromptMessage], array: msgspec.Raw) -> msgspec.Raw:
    """Puts the turns, at least one, before the array's items, which keep their bytes."""
    begin, own = _encode(turns)[:-1], memoryview(array)[1:]
    is_empty = bytes(own).strip() == b"]"
    return msgspec.Raw(b"".join((begin, b"" if is_empty else b",", own)))


def _joined(messages: Sequence[PromptMessage]) -> str:
    return _BETWEEN_TEXTS.join(message["content"] for message in messages)
