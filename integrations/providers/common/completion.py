"""Writes completions and chunks of the wire format for providers with another dialect.

Reasoning is sent as `reasoning_content` (the text, named as by DeepSeek and most look-alikes) and, if it must come back
unchanged, as OpenRouter's `reasoning_details`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import msgspec

from integrations.providers.base import ParsedResponse, StreamEvent
from integrations.providers.common.usage import usage_object
from integrations.providers.usage import Usage

_encode = msgspec.json.Encoder().encode


def tool_call(call_id: str, name: str, arguments: str, **extra: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **extra}


def reasoning_text(text: str, *, format: str, signature: str = "", index: int = 0) -> dict[str, Any]:
    detail: dict[str, Any] = {"type": "reasoning.text", "text": text, "format": format, "index": index}
    if signature:
        detail["signature"] = signature
    return detail


def reasoning_encrypted(data: str, *, format: str, index: int = 0, id: str = "") -> dict[str, Any]:
    detail: dict[str, Any] = {"type": "reasoning.encrypted", "data": data, "format": format, "index": index}
    if id:
        detail["id"] = id
    return detail


def url_citation(url: str, title: str, start: int, end: int) -> dict[str, Any]:
    """https://platform.openai.com/docs/api-reference/chat/object"""
    cited = {"url": url, "title": title, "start_index": start, "end_index": end}
    return {"type": "url_citation", "url_citation": cited}


@dataclass(slots=True)
class ParsedChoice:
    """`content` is None without text (a tool call, an empty answer). `specific` holds further fields of the vendor's
    answer under the vendor's names (`provider_specific_fields`)."""

    content: str | None = None
    reasoning: str = ""
    reasoning_details: list[Mapping[str, Any]] = field(default_factory=list)
    tool_calls: list[Mapping[str, Any]] = field(default_factory=list)
    finish_reason: str = "stop"
    refusal: str = ""
    annotations: list[Mapping[str, Any]] = field(default_factory=list)
    logprobs: Mapping[str, Any] | None = None
    specific: dict[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def message(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.refusal:
            message["refusal"] = self.refusal
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.reasoning_details:
            message["reasoning_details"] = self.reasoning_details
        if self.tool_calls:
            message["tool_calls"] = self.tool_calls
        if self.annotations:
            message["annotations"] = self.annotations
        if self.specific:
            message["provider_specific_fields"] = self.specific
        return {**message, **self.extra}


def whole(
    answers: Iterable[ParsedChoice], *, completion_id: str, model: str, usage: Usage | None, created: int | None = None
) -> ParsedResponse:
    """`completion_id` is the provider's own id, or one derived from its answer. `usage` is None if nothing was counted:
    the body then has zeros, while the record may have an estimate."""
    choices: list[dict[str, Any]] = []
    for index, answer in enumerate(answers):
        choice = {"index": index, "message": answer.message(), "finish_reason": answer.finish_reason}
        if answer.logprobs is not None:
            choice["logprobs"] = answer.logprobs
        choices.append(choice)
    body: dict[str, Any] = {
        "id": completion_id,
        "object": "chat.completion",
        "created": int(time.time()) if created is None else created,
        "model": model,
        "choices": choices,
        "usage": usage_object(usage or Usage()),
    }
    return ParsedResponse(body=_encode(body), model=model, finish_reason=choices[0]["finish_reason"], usage=usage)


class CollectedBlocks:
    """Collects the complete blocks of a stream; once a block is the vendor's own, all of them are sent."""

    __slots__ = ("_waiting", "has_own")

    def __init__(self) -> None:
        self._waiting: list[Callable[[], dict[str, Any]]] = []
        self.has_own = False

    def add(self, whole: Callable[[], dict[str, Any]], *, is_own: bool) -> list[dict[str, Any]]:
        """`whole` returns the block's form in a whole answer. Returns the blocks that may be sent now."""
        self._waiting.append(whole)
        self.has_own = self.has_own or is_own
        if not self.has_own:
            return []
        waiting, self._waiting = self._waiting, []
        return [one() for one in waiting]


def input_of(text: str) -> Any:
    try:
        return msgspec.json.decode(text) or {}
    except msgspec.DecodeError:
        return {}


def _is_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, Mapping) for entry in value)


class Chunks:
    """Writes the chunks of one stream. `model` may be set when the provider sends it, `id` before the first chunk only,
    since a stream has one id. If the provider sends no id, one is made here."""

    __slots__ = ("_created", "_head", "_listed", "id", "model")

    def __init__(self, *, completion_id: str, model: str, created: int | None = None) -> None:
        self.id = completion_id
        self.model = model
        self._created = int(time.time()) if created is None else created
        self._head: tuple[str, str, bytes] | None = None
        self._listed: dict[str, int] = {}  # `_listed` counts the entries of each list that were sent.

    def role(self, index: int = 0) -> StreamEvent:
        return self._event(index, {"role": "assistant", "content": ""}, has_output=False)

    def text(self, text: str, index: int = 0, logprobs: Mapping[str, Any] | None = None) -> StreamEvent:
        logprobs_json = b"" if logprobs is None else b',"logprobs":' + _encode(logprobs)
        visible = text if index == 0 else ""
        return self._event(index, {"content": text}, has_output=bool(text), text=visible, fields=logprobs_json)

    def reasoning(self, text: str, details: list[Mapping[str, Any]] | None = None, index: int = 0) -> StreamEvent:
        """`text` may be empty: a signature or encrypted block comes alone."""
        delta: dict[str, Any] = {}
        if text:
            delta["reasoning_content"] = text
        if details:
            delta["reasoning_details"] = details
        return self._event(index, delta, has_output=bool(delta))

    def tool_call(
        self, position: int, call_id: str, name: str, arguments: str = "", index: int = 0, **extra: Any
    ) -> StreamEvent:
        call = {"index": position, **tool_call(call_id, name, arguments, **extra)}
        return self._event(index, {"tool_calls": [call]}, has_output=True)

    def arguments(self, position: int, fragment: str, index: int = 0) -> StreamEvent:
        delta = {"tool_calls": [{"index": position, "function": {"arguments": fragment}}]}
        return self._event(index, delta, has_output=True)

    def listed(self, **lists: Iterable[Mapping[str, Any]]) -> StreamEvent:
        """A chunk with entries of growing lists of choice 0 (`annotations`).

        Each entry carries its index: the official SDK's stream helper joins a list's entries by `index`, and fails at a
        second one without it.
        """
        delta = {name: numbered for name, entries in lists.items() if (numbered := self._numbered(name, entries))}
        return self._event(0, delta, has_output=bool(delta))

    def specific(self, fields: Mapping[str, Any], index: int = 0) -> StreamEvent:
        """A chunk with complete fields of `provider_specific_fields`.

        A field comes once; a list of objects may continue in a later chunk, so its entries are numbered (see `listed`).
        """
        numbered = {
            name: self._numbered(f"{index}.{name}", value) if _is_objects(value) else value
            for name, value in fields.items()
        }
        return self._event(index, {"provider_specific_fields": numbered}, has_output=bool(numbered))

    def _numbered(self, name: str, entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        start = self._listed.get(name, 0)
        numbered = [{**entry, "index": start + offset} for offset, entry in enumerate(entries)]
        self._listed[name] = start + len(numbered)
        return numbered

    def delta(self, delta: Mapping[str, Any], index: int = 0) -> StreamEvent:
        return self._event(index, delta, has_output=True)

    def last(self, finish_reasons: Mapping[int, str], usage: Usage | None) -> list[StreamEvent]:
        """The last chunk: empty deltas, each choice's finish reason, and usage once, with zeros if nothing was
        counted.
        """
        choices = [
            {"index": index, "delta": {}, "finish_reason": reason} for index, reason in sorted(finish_reasons.items())
        ]
        usage_json = _encode(usage_object(usage or Usage()))
        return [StreamEvent(b'%b%b,"usage":%b}' % (self._top(), _encode(choices), usage_json), has_output=False)]

    def _event(
        self, index: int, delta: Mapping[str, Any], *, has_output: bool, text: str = "", fields: bytes = b""
    ) -> StreamEvent:
        data = b'%b[{"index":%d,"delta":%b%b,"finish_reason":null}]}' % (self._top(), index, _encode(delta), fields)
        return StreamEvent(data, has_output, text)

    def _top(self) -> bytes:
        head = self._head
        if head is None or head[0] != self.id or head[1] != self.model:
            if head is not None:
                self.id = head[0]  # The id is kept because a stream that began with one id has to keep it.
            elif not self.id:
                self.id = f"chatcmpl-{uuid4().hex}"
            fields = {"id": self.id, "object": "chat.completion.chunk", "created": self._created, "model": self.model}
            head = self._head = (self.id, self.model, _encode(fields)[:-1] + b',"choices":')
        return head[2]
