"""Gemini's `provider_specific_fields`: the parts of Google's own tools, in answers and in later requests.

Code that ran, searches and their results stand between the parts of the answer, and the model needs them there on the
next turn (https://ai.google.dev/gemini-api/docs/code-execution#multi-turn). Clients get them as `parts`, each with its
place in the message: the number of characters of content, calls and images before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from integrations.providers.common.conversation import Block, Native
from integrations.providers.google.shapes import Part, has, plain

PARTS = "parts"
_PLACE = "place"
# Google's parts for code and for tools are described at https://ai.google.dev/api/caching#Part. Those for tools came
# with the third generation.
_CODE = ("executableCode", "codeExecutionResult")
_TOOLS = ("toolCall", "toolResponse")
_OWN = (*_CODE, *_TOOLS)


class Place(NamedTuple):
    """What stands before a part in the message: the numbers of characters, calls and images."""

    content: int = 0
    tool_calls: int = 0
    images: int = 0

    def behind(self, other: Place) -> Place:
        return Place(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def is_reached(self, so_far: Place) -> bool:
        return all(mine <= theirs for mine, theirs in zip(self, so_far, strict=True))


START = Place()


@dataclass(frozen=True, slots=True)
class OwnParts(Native):
    """The parts of Google's tools in one assistant's message; the block stands before its other blocks."""

    entries: tuple[tuple[Place, Mapping[str, Any]], ...] = ()


def own_part(part: Part, place: Place) -> dict[str, Any]:
    held = (part.executable_code, part.code_execution_result, part.tool_call, part.tool_response)
    fields: dict[str, Any] = {name: plain(raw) for name, raw in zip(_OWN, held, strict=True) if has(raw)}
    if part.thought:
        fields["thought"] = True
    if part.thought_signature:
        fields["thoughtSignature"] = part.thought_signature
    return {**fields, _PLACE: place._asdict()}


def rebuild(message: Mapping[str, Any], blocks: list[Block]) -> list[Block]:
    """Adds the parts that came with the message; leaves out other vendors' parts."""
    fields = message.get("provider_specific_fields")
    entries = fields.get(PARTS) if isinstance(fields, Mapping) else None
    if not isinstance(entries, list):
        return blocks
    own = tuple(read for entry in entries if (read := _read(entry)) is not None)
    return [OwnParts("document", "", entries=own), *blocks] if own else blocks


def _read(entry: Any) -> tuple[Place, Mapping[str, Any]] | None:
    if not isinstance(entry, Mapping):
        return None
    kinds = [name for name in _OWN if isinstance(entry.get(name), Mapping)]
    place, signature = entry.get(_PLACE), entry.get("thoughtSignature")
    if len(kinds) != 1 or not isinstance(place, Mapping):
        return None
    counts = [count for name in Place._fields if isinstance(count := place.get(name), int) and count >= 0]
    if len(counts) != len(Place._fields):
        return None
    part: dict[str, Any] = {kinds[0]: entry[kinds[0]]}
    if entry.get("thought") is True:
        part["thought"] = True
    if isinstance(signature, str) and signature:
        part["thoughtSignature"] = signature
    return Place(*counts), part


def accepted_part(part: Mapping[str, Any], *, tools: bool, ids: bool) -> dict[str, Any] | None:
    """None if the model does not know such parts. `tools`: the model is of the third generation; `ids`: it takes
    ids.
    """
    if not tools and not any(name in part for name in _CODE):
        return None
    if ids:
        return dict(part)
    return {
        name: {key: value for key, value in held.items() if key != "id"} if name in _OWN else held
        for name, held in part.items()
    }


def insert_parts(parts: Sequence[dict[str, Any]], own: Sequence[tuple[Place, dict[str, Any]]]) -> list[dict[str, Any]]:
    waiting = list(own)
    put: list[dict[str, Any]] = []
    so_far = START
    for part in parts:
        rest: dict[str, Any] | None = part
        while rest is not None:
            while waiting and waiting[0][0].is_reached(so_far):
                put.append(waiting.pop(0)[1])
            first, rest = _split(rest, waiting[0][0].content - so_far.content if waiting else 0)
            put.append(first)
            so_far = so_far.behind(_length(first))
    return [*put, *(part for _, part in waiting)]


def _split(part: dict[str, Any], length: int) -> tuple[dict[str, Any], dict[str, Any] | None]:
    text = part.get("text")
    if not isinstance(text, str) or part.get("thought") or not 0 < length < len(text):
        return part, None
    return {"text": text[:length]}, {**part, "text": text[length:]}


def _length(part: Mapping[str, Any]) -> Place:
    if "functionCall" in part:
        return Place(tool_calls=1)
    if "inlineData" in part:
        return Place(images=1)
    return Place(0 if part.get("thought") else len(part.get("text") or ""))
