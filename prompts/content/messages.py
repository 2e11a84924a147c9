"""The messages of a version: their form, and the rules for it (docs/prompts.md#messages)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import TypedDict

from prompts.content.templating import MAX_RENDERED_BYTES, RoleAndText
from prompts.errors import InvalidVersionError

ROLES = ("system", "developer", "user", "assistant")
INSTRUCTION_ROLES = ("system", "developer")
INCLUDE = "prompt"
"""The field of a message that stands for another prompt."""

MAX_MESSAGES = 100

_FIELDS = frozenset({"role", "content"})
# The name of a prompt, and a label or a number behind it.
_MAX_REFERENCE_CHARACTERS = 200


class PromptMessage(TypedDict):
    """A message as a request sends it."""

    role: str
    content: str


def texts_of(system_prompt: str, messages: Sequence[Mapping[str, Any]]) -> list[RoleAndText]:
    if not messages:
        return [("system", system_prompt)]
    return [(message["role"], message["content"]) for message in messages if INCLUDE not in message]


def shown_messages(system_prompt: str, messages: Sequence[Mapping[str, Any]]) -> list[RoleAndText]:
    if not messages:
        return [("system", system_prompt)]
    return [
        (INCLUDE, message[INCLUDE]) if INCLUDE in message else (message["role"], message["content"])
        for message in messages
    ]


def written_out(system_prompt: str, messages: Sequence[Mapping[str, Any]]) -> str:
    return system_prompt or "\n\n".join(f"[{role}]\n{text}" for role, text in shown_messages(system_prompt, messages))


def check_messages(messages: Sequence[Any]) -> None:
    """Raises InvalidVersionError with the path at fault: `messages.0.content`."""
    if len(messages) > MAX_MESSAGES:
        raise _invalid("messages", f"At most {MAX_MESSAGES} messages are allowed.")
    size, others = 0, False
    for index, message in enumerate(messages):
        path = f"messages.{index}"
        if not isinstance(message, Mapping):
            raise _invalid(path, "Must be an object with role and content, or with prompt.")
        if INCLUDE in message:
            _check_reference(message, path)
            continue
        size += _size(message, path)
        if message["role"] not in INSTRUCTION_ROLES:
            others = True
        elif others:
            raise _invalid(f"{path}.role", "Messages of role system and developer stand before all others.")
    if size > MAX_RENDERED_BYTES:
        raise _invalid("messages", f"{size} bytes of text, at most {MAX_RENDERED_BYTES} are allowed.")


def _check_reference(message: Mapping[str, Any], path: str) -> None:
    for name in message:
        if name != INCLUDE:
            raise _invalid(f"{path}.{name}", "Unknown field; a message that stands for a prompt has only its name.")
    reference = message[INCLUDE]
    if not isinstance(reference, str) or not 0 < len(reference) <= _MAX_REFERENCE_CHARACTERS:
        raise _invalid(f"{path}.{INCLUDE}", "Must be the name of a prompt, as in name, name@label or name@3.")
    if not reference.isprintable():
        raise _invalid(f"{path}.{INCLUDE}", "Must have printable characters only.")


def _size(message: Mapping[str, Any], path: str) -> int:
    for name in message:
        if name not in _FIELDS:
            raise _invalid(f"{path}.{name}", "Unknown field; a message has role and content.")
    role, text = message.get("role"), message.get("content")
    if not isinstance(role, str) or role not in ROLES:
        raise _invalid(f"{path}.role", f"Must be one of {', '.join(ROLES)}.")
    if not isinstance(text, str):
        raise _invalid(f"{path}.content", "Must be a text.")
    if not text.strip():
        raise _invalid(f"{path}.content", "This field may not be blank.")
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise _invalid(f"{path}.content", "Holds text that is not well-formed.") from None


def _invalid(path: str, problem: str) -> InvalidVersionError:
    return InvalidVersionError({path: [problem]})
