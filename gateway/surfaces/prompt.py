"""The messages of a managed prompt in the form of protocols whose instructions stand apart from the conversation."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from prompts.content.messages import INSTRUCTION_ROLES, PromptMessage

_BETWEEN_TEXTS = "\n\n"
_encode = msgspec.json.Encoder().encode


def instructions_of(messages: Sequence[PromptMessage]) -> str:
    """Returns the texts of role system and developer as one text, with a blank line between them."""
    return _joined([message for message in messages if message["role"] in INSTRUCTION_ROLES])


def turns_of(messages: Sequence[PromptMessage]) -> list[PromptMessage]:
    """Returns the messages of the user and the assistant."""
    return [message for message in messages if message["role"] not in INSTRUCTION_ROLES]


def text_of(messages: Sequence[PromptMessage]) -> str:
    """Returns all texts as one."""
    return _joined(messages)


def with_turns(turns: Sequence[PromptMessage], array: msgspec.Raw) -> msgspec.Raw:
    """Returns the JSON array with the turns, of which there is at least one, before its own items, whose bytes stay as
    they are."""
    begin, own = _encode(turns)[:-1], memoryview(array)[1:]
    is_empty = bytes(own).strip() == b"]"
    return msgspec.Raw(b"".join((begin, b"" if is_empty else b",", own)))


def _joined(messages: Sequence[PromptMessage]) -> str:
    return _BETWEEN_TEXTS.join(message["content"] for message in messages)
