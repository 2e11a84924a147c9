"""Writes a stream of each surface as lines that can be read: the kinds of its events in order, with their places. Equal
lines in a row are one line with their number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from tests.gateway.surfaces.gemini.clients import events_of as gemini_events
from tests.gateway.surfaces.golden.answers import chat_payloads
from tests.gateway.surfaces.messages.clients import events_of as messages_events
from tests.gateway.surfaces.responses.chunks import events_of as responses_events

Json = dict[str, Any]


def outline(surface: str, frames: bytes) -> str:
    lines = [(line, len([*group])) for line, group in groupby(_LINES[surface](frames))]
    return "".join(f"{line} x{count}\n" if count > 1 else f"{line}\n" for line, count in lines)


def _chat(frames: bytes) -> Iterator[str]:
    for chunk in chat_payloads(frames):
        if "error" in chunk:
            yield "error"
        for choice in chunk.get("choices", ()):
            names = [name for name, value in choice["delta"].items() if value not in (None, "", [])]
            calls = [f"{call['index']}{' begins' * ('id' in call)}" for call in choice["delta"].get("tool_calls") or ()]
            finish = f"finish_reason={choice['finish_reason']}" if choice["finish_reason"] else ""
            yield " ".join(filter(None, [*names, *calls, finish, "usage" * bool(chunk.get("usage"))])) or "empty"
    yield "[DONE]"


def _completions(frames: bytes) -> Iterator[str]:
    for chunk in chat_payloads(frames):
        if "error" in chunk:
            yield "error"
        for choice in chunk.get("choices", ()):
            finish = f"finish_reason={choice['finish_reason']}" if choice["finish_reason"] else ""
            yield " ".join(_present(["text" * bool(choice["text"]), finish, "usage" * bool(chunk.get("usage"))]))
    yield "[DONE]"


def _messages(frames: bytes) -> Iterator[str]:
    for event in messages_events(frames):
        delta, block = event.get("delta", {}), event.get("content_block", {})
        index = f"{event['index']}" if "index" in event else ""
        # A signature that says that nothing was signed is a signature too.
        found = [event["type"], index, block.get("type"), delta.get("type"), delta.get("stop_reason")]
        yield " ".join(filter(None, found))


def _gemini(frames: bytes) -> Iterator[str]:
    for event in gemini_events(frames):
        if "error" in event:
            yield f"error {event['error']['status']}"
            continue
        for candidate in event["candidates"]:
            for part in candidate["content"]["parts"]:
                yield " ".join(name if value is not True else f"{name}!" for name, value in part.items())
            if "finishReason" in candidate:
                yield f"finishReason={candidate['finishReason']}{' usage' * ('usageMetadata' in event)}"


def _responses(frames: bytes) -> Iterator[str]:
    for event in responses_events(frames):
        places = [event.get(name) for name in ("output_index", "summary_index", "content_index")]
        place = ".".join(str(one) for one in places if one is not None)
        kind = (event.get("item") or event.get("part") or {}).get("type")
        yield " ".join(_present([event["type"], place, kind]))


def _present(words: Iterable[str | None]) -> list[str]:
    return [word for word in words if word]


_LINES: Mapping[str, Callable[[bytes], Iterable[str]]] = {
    "chat": _chat,
    "responses": _responses,
    "messages": _messages,
    "gemini": _gemini,
    "completions": _completions,
}
