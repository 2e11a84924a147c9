"""The messages in the prompt editor: rows of a role and a text, in the order they are sent.

The editor's text is the first message of role system. Buttons of the form add, move and remove rows without scripts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from prompts.content.messages import INCLUDE, ROLES

ACTION = "message-"
"""The beginning of the actions that change the rows: `message-add`, `message-up-0`."""

CHOICES = (*((role, role) for role in ROLES), (INCLUDE, "another prompt"))
_SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A message being edited; the text of an included prompt is its name."""

    role: str
    text: str


def rows_of(messages: Sequence[Mapping[str, Any]]) -> tuple[str, list[MessageRow]]:
    rows = [
        MessageRow(INCLUDE, message[INCLUDE]) if INCLUDE in message else MessageRow(message["role"], message["content"])
        for message in messages
    ]
    return (rows[0].text, rows[1:]) if rows and rows[0].role == _SYSTEM else ("", rows)


def rows_sent(data: QueryDict) -> list[MessageRow]:
    pairs = zip(data.getlist("message_role"), data.getlist("message_text"), strict=False)
    return [MessageRow(str(role), str(text).replace("\r\n", "\n")) for role, text in pairs]


def changed(rows: Sequence[MessageRow], action: str) -> list[MessageRow]:
    made = list(rows)
    name, _, place = action.removeprefix(ACTION).partition("-")
    index = int(place) if place.isascii() and place.isdecimal() and len(place) < 4 else len(made)
    if name == "add":
        made.append(MessageRow("user", ""))
    elif index < len(made):
        row = made.pop(index)
        if name != "remove":
            made.insert(max(0, index + (-1 if name == "up" else 1)), row)
    return made


def written(text: str, rows: Sequence[MessageRow]) -> tuple[str, list[dict[str, Any]]]:
    """Returns a version's system prompt and messages, one of them empty. Rows without text are left out."""
    messages = [
        {INCLUDE: row.text.strip()} if row.role == INCLUDE else {"role": row.role, "content": row.text}
        for row in rows
        if row.text.strip()
    ]
    if not messages:
        return text, []
    return "", [{"role": _SYSTEM, "content": text}, *messages] if text.strip() else messages
