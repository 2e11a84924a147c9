from __future__ import annotations

import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

# A piece is up to six letters or one other character, with the white space before it. The pieces joined give the text
# again.
_PIECE = re.compile(r"\s*\w{1,6}|\s*[^\w\s]|\s+")

_TOKENS_PER_MESSAGE = 4
_TOKENS_PER_ATTACHMENT = 85
_MIN_CACHED_TOKENS = 128
_CACHED_STEP = 64


def pieces(text: str) -> list[str]:
    return _PIECE.findall(text)


def count(text: str) -> int:
    return len(pieces(text))


def message_tokens(message: Mapping[str, Any]) -> int:
    """Text counts by its pieces, an image, document or audio part at a flat rate, tool calls by their JSON."""
    content = message.get("content")
    tokens = _TOKENS_PER_MESSAGE
    if isinstance(content, str):
        tokens += count(content)
    elif isinstance(content, list):
        tokens += sum(_part_tokens(part) for part in content)
    if message.get("tool_calls"):
        tokens += count(json.dumps(message["tool_calls"]))
    return tokens


def _part_tokens(part: Any) -> int:
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return count(part["text"])
    return _TOKENS_PER_ATTACHMENT


class PrefixCache:
    def __init__(self, size: int = 20_000) -> None:
        self._size = size
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def prompt_tokens(self, messages: Sequence[Mapping[str, Any]], tools: Any) -> tuple[int, int]:
        head = json.dumps(tools or None)
        total = count(head) if tools else 0
        cached = 0
        digest = hashlib.sha256(head.encode())
        for message in messages:
            digest.update(json.dumps(message).encode())
            total += message_tokens(message)
            if self._note(digest.digest()):
                cached = total
        return total, 0 if cached < _MIN_CACHED_TOKENS else cached - cached % _CACHED_STEP

    def _note(self, key: bytes) -> bool:
        known = key in self._seen
        self._seen[key] = None
        self._seen.move_to_end(key)
        if len(self._seen) > self._size:
            self._seen.popitem(last=False)
        return known
