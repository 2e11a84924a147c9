"""What the parts of an answer are to the client, the same for whole and streamed ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import msgspec

from integrations.providers.completion import reasoning_encrypted, reasoning_text
from integrations.providers.google.contents import FORMAT, image_id, stretch_id
from integrations.providers.google.shapes import Blob, Candidate, FunctionCall, Part, has

_UNFINISHED = "FINISH_REASON_UNSPECIFIED"


class Text(msgspec.Struct, frozen=True):
    text: str


class Thought(msgspec.Struct, frozen=True):
    """`details` hold what has to come back: `text` may be empty."""

    text: str
    details: list[Mapping[str, Any]]


class Call(msgspec.Struct, frozen=True):
    """`arguments` is JSON text."""

    position: int
    id: str
    name: str
    arguments: str
    extra: Mapping[str, Any]


class Image(msgspec.Struct, frozen=True):
    """As OpenRouter hands images out: https://openrouter.ai/docs/features/multimodal/image-generation."""

    entry: Mapping[str, Any]


Piece = Text | Thought | Call | Image


@dataclass(slots=True)
class Choice:
    """One candidate while its parts are read, in as many events as they come."""

    index: int
    seed: str  # what ids of calls are made from where Google gives none
    text: list[str] = field(default_factory=list)
    length: int = 0  # of the text, in characters
    calls: int = 0
    ids: set[str] = field(default_factory=set)  # of the calls
    details: int = 0
    images: int = 0
    finished: str | int | None = None
    message: str = ""  # why it ended, in Google's words
    grounding: msgspec.Raw | None = None
    citations: list[msgspec.Raw] = field(default_factory=list)

    @property
    def says_something(self) -> bool:
        """Whether there is text, a call or an image; thoughts are none of the answer."""
        return bool(self.length or self.calls or self.images)

    def read(self, candidate: Candidate) -> Iterator[Piece]:
        if candidate.finish_reason and candidate.finish_reason != _UNFINISHED:
            self.finished = candidate.finish_reason
            self.message = candidate.finish_message or self.message
        if candidate.content is not None:
            for part in candidate.content.parts or ():
                yield from self._part(part)
        if has(candidate.grounding_metadata):
            self.grounding = candidate.grounding_metadata
        if has(candidate.citation_metadata):
            self.citations.append(candidate.citation_metadata)

    def _part(self, part: Part) -> Iterator[Piece]:
        if part.function_call is not None:
            yield from self._call(part.function_call, part.thought_signature or "")
        elif part.text is not None:
            yield from self._thought(part) if part.thought else self._text(part.text, part.thought_signature or "")
        elif part.inline_data is not None and not part.thought:
            yield from self._image(part.inline_data, part.thought_signature or "")
        elif part.thought_signature and not part.is_of_a_tool():
            yield from self._text("", part.thought_signature)

    def _text(self, text: str, signature: str) -> Iterator[Piece]:
        start = self.length
        if text:
            self.text.append(text)
            self.length += len(text)
            yield Text(text)
        if signature:
            yield Thought("", [self._encrypted(signature, stretch_id(start, self.length))])

    def _thought(self, part: Part) -> Iterator[Piece]:
        text, signature = part.text or "", part.thought_signature or ""
        details: list[Mapping[str, Any]] = []
        if signature and text:
            details.append(reasoning_text(text, format=FORMAT, signature=signature, index=self.details))
            self.details += 1
        elif signature:
            details.append(self._encrypted(signature, ""))
        if text or details:
            yield Thought(text, details)

    def _call(self, call: FunctionCall, signature: str) -> Iterator[Piece]:
        call_id = call.id if call.id and call.id not in self.ids else self._made_up_id()
        self.ids.add(call_id)
        extra: dict[str, Any] = {}
        if signature:
            extra["extra_content"] = {"google": {"thought_signature": signature}}
            yield Thought("", [self._encrypted(signature, call_id)])
        arguments = msgspec.json.format(call.args, indent=-1).decode() if has(call.args) else "{}"
        yield Call(self.calls, call_id, call.name, arguments, extra)
        self.calls += 1

    def _image(self, blob: Blob, signature: str) -> Iterator[Piece]:
        if not blob.mime_type.startswith("image/"):
            return
        url = f"data:{blob.mime_type};base64,{blob.data}"
        yield Image({"type": "image_url", "image_url": {"url": url}, "index": self.images})
        if signature:
            yield Thought("", [self._encrypted(signature, image_id(self.images))])
        self.images += 1

    def _encrypted(self, signature: str, belongs_to: str) -> dict[str, Any]:
        detail = reasoning_encrypted(signature, format=FORMAT, index=self.details, id=belongs_to)
        self.details += 1
        return detail

    def _made_up_id(self) -> str:
        """The same for the same answer however it was cut, and another for every call."""
        return "call_" + blake2b(f"{self.seed}/{self.index}/{self.calls}".encode(), digest_size=12).hexdigest()
