"""The JSON of conversations: turns and their parts, with long texts cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypedDict

from analytics.conversation.images import sniff_part
from analytics.conversation.turns import Part, PartKind, Turn


class ConversationPart(TypedDict):
    """`characters` is the length of the whole text, of which `text` may be the beginning. `image` is the number of an
    image that is part of the bodies, `url` the address of one that is not."""

    kind: str
    text: str
    characters: int
    name: str
    call_id: str
    is_error: bool
    url: str | None
    media_type: str | None
    image: int | None


class ConversationTurn(TypedDict):
    role: str
    parts: list[ConversationPart]
    omitted_parts: int


class TextBounds:
    """Cuts texts to `each` characters, and to nothing once `total` characters of an answer are reached."""

    def __init__(self, each: int, total: int, parts: int = 100) -> None:
        self.each = each
        self.parts = parts
        self._left = total

    def cut(self, text: str) -> str:
        shown = text[: max(min(self.each, self._left), 0)]
        self._left -= len(shown)
        return shown


def conversation_turns(turns: Iterable[Turn], bounds: TextBounds, images: Iterator[int]) -> list[ConversationTurn]:
    """Returns turns with their texts within the bounds. `images` numbers the images of the bodies in their order."""
    return [
        {
            "role": turn.role[: bounds.each],
            "parts": [_part(part, bounds, images) for part in turn.parts[: bounds.parts]],
            "omitted_parts": max(len(turn.parts) - bounds.parts, 0),
        }
        for turn in turns
    ]


def skip_images(turns: Sequence[Turn], images: Iterator[int]) -> None:
    """Counts the images of turns that are not shown, so that those after them keep their numbers."""
    for turn in turns:
        for part in turn.parts:
            if part.kind is PartKind.IMAGE and part.data:
                next(images)


def _part(part: Part, bounds: TextBounds, images: Iterator[int]) -> ConversationPart:
    return {
        "kind": str(part.kind),
        "text": bounds.cut(part.text),
        "characters": len(part.text),
        "name": part.name[:200],
        "call_id": part.call_id[:200],
        "is_error": part.is_error,
        "url": bounds.cut(part.url) or None,
        "media_type": sniff_part(part) or part.media_type[:200] or None,
        "image": next(images) if part.kind is PartKind.IMAGE and part.data else None,
    }
