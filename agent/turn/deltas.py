from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

_decode = msgspec.json.Decoder(dict[str, Any]).decode

# Fields beside text and calls that a provider may need back in the next request.
_TEXTS = ("reasoning_content", "reasoning")
_JOINED = frozenset({"text", "summary", "data"})
# Any other id would differ between a row, an event and the next request.
_ID = re.compile(r"[!-~]{1,200}")
# The size that an empty call counts for: each is an event, a row and a part of every later request.
_CALL_CHARACTERS = 500
# Arguments of tools are flat; a deeper value would be refused as part of the next request.
_DEPTH = 50


@dataclass(slots=True)
class PartialAnswer:
    text: str = ""
    reasoning: dict[str, Any] = field(default_factory=dict)
    total_tokens: int = 0
    size: int = 0
    _calls: dict[int, dict[str, Any]] = field(default_factory=dict)

    def add(self, chunk: Mapping[str, Any]) -> str:
        usage = chunk.get("usage")
        if isinstance(usage, Mapping) and isinstance(usage.get("total_tokens"), int):
            self.total_tokens = usage["total_tokens"]
        return "".join(self._add_delta(delta) for delta in _deltas(chunk))

    def _add_delta(self, delta: Mapping[str, Any]) -> str:
        new = "".join(delta[name] for name in ("content", "refusal") if isinstance(delta.get(name), str))
        self.text += new
        self.size += len(new)
        for name in _TEXTS:
            if isinstance(delta.get(name), str):
                self.reasoning[name] = self.reasoning.get(name, "") + delta[name]
                self.size += len(delta[name])
        for fragment in _objects(delta.get("tool_calls")):
            self._add_call(fragment)
        for detail in _objects(delta.get("reasoning_details")):
            self._add_detail(detail)
        return new

    def _add_call(self, fragment: Mapping[str, Any]) -> None:
        index = fragment.get("index")
        place = index if isinstance(index, int) else len(self._calls)
        if place not in self._calls:
            self._calls[place] = {"function": {"name": "", "arguments": ""}}
            self.size += _CALL_CHARACTERS
        call = self._calls[place]
        for name, value in fragment.items():
            if name == "function" and isinstance(value, Mapping):
                for part in ("name", "arguments"):
                    if isinstance(value.get(part), str):
                        call["function"][part] += value[part]
                        self.size += len(value[part])
            elif name not in ("index", "function") and value is not None:
                call[name] = value
                self.size += _length(value)

    def _add_detail(self, detail: Mapping[str, Any]) -> None:
        """Joins the fragments of one block, which share index and type: texts are appended, other members set once."""
        details = self.reasoning.setdefault("reasoning_details", [])
        known = details[-1] if details else None
        if known is None or (known.get("index"), known.get("type")) != (detail.get("index"), detail.get("type")):
            known = {}
            details.append(known)
        for name, value in detail.items():
            if name in _JOINED and isinstance(value, str):
                known[name] = (known.get(name) or "") + value
                self.size += len(value)
            elif value is not None or name not in known:
                known[name] = value
                self.size += _length(value)

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls in order, each with an id of its own: some providers omit ids or repeat them."""
        found, taken = [], set[str]()
        for place in sorted(self._calls):
            call = {**self._calls[place], "type": "function"}
            if not isinstance(call.get("id"), str) or not _ID.fullmatch(call["id"]) or call["id"] in taken:
                call["id"] = f"call_{uuid.uuid4().hex}"
            taken.add(call["id"])
            found.append(call)
        return found


class Frames:
    """Splits the bytes of a gateway stream into chunks, wherever the bytes are cut."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        *whole, self._rest = (self._rest + data).split(b"\n\n")
        for event in whole:
            if event.startswith(b"data: {"):
                try:
                    yield _decode(event[6:])
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    # A chunk that cannot be decoded carries no part of the answer.
                    continue


def read_arguments(call: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns None if the arguments are not a JSON object that every provider's dialect can carry."""
    try:
        found = msgspec.json.decode(call["function"]["arguments"] or "{}")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and not _is_deep(found) else None


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEPTH):
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return bool(level)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str) else len(msgspec.json.encode(value))


def _deltas(chunk: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for choice in _objects(chunk.get("choices")):
        if choice.get("index", 0) == 0 and isinstance(choice.get("delta"), Mapping):
            yield choice["delta"]


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
