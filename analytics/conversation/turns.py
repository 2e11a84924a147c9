from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum


class PartKind(StrEnum):
    TEXT = "text"
    REFUSAL = "refusal"
    THINKING = "thinking"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    IMAGE = "image"
    FIELD = "field"  # A field of a message that no other kind stands for; `name` is its name, `text` its JSON.
    RAW = "raw"  # A part of an unknown type; `name` is the type, `text` its JSON.


@dataclass(frozen=True, slots=True)
class Part:
    """A tool call's `text` is its arguments in JSON. An image has either the client's `url`, or `data` in base64 and
    the `media_type` that it claims."""

    kind: PartKind
    text: str = ""
    name: str = ""
    call_id: str = ""
    is_error: bool = False
    url: str = ""
    media_type: str = ""
    data: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    role: str
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """A request's turns, its tools (name and JSON of each), the JSON of the schema that the answer has to follow, and
    the JSON of all other fields by name."""

    turns: tuple[Turn, ...] = ()
    tools: tuple[Part, ...] = ()
    schema: str = ""
    parameters: tuple[tuple[str, str], ...] = ()


def inline_images(*sides: Sequence[Turn]) -> Iterator[Part]:
    for turns in sides:
        for turn in turns:
            yield from (part for part in turn.parts if part.kind is PartKind.IMAGE and part.data)
