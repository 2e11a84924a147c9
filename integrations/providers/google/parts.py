"""The parts and the sources of Gemini's answers in the form that clients get, the same for whole and streamed answers.
Google counts the bytes of the text in UTF-8 (https://ai.google.dev/gemini-api/docs/google-search#attributing_sources),
OpenAI its characters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import msgspec

from integrations.providers.common.completion import reasoning_encrypted, reasoning_text, url_citation
from integrations.providers.google.messages import FORMAT, image_id, stretch_id
from integrations.providers.google.shapes import Blob, Candidate, FunctionCall, Part, has, plain, reason_named
from integrations.providers.google.specifics import Place, own_part

# Grounding chunks from the web, from maps, from retrieved documents and from images have an address.
_KINDS = ("web", "maps", "retrievedContext", "image")


def annotations_of(choice: Choice) -> list[Mapping[str, Any]]:
    """Returns the annotations: each source once per passage of the text, and for the whole text if it supports no
    passage in particular."""
    if not choice.grounding and not choice.citations:
        return []
    text = "".join(choice.text)
    found = [*_grounded(choice, text), *_cited(choice, text)]
    unique = {(url, start, end): title for url, title, start, end in found}
    return [url_citation(url, title, start, end) for (url, start, end), title in unique.items()]


Source = tuple[str, str, int, int]  # A source is (address, title, start, end).


def _grounded(choice: Choice, text: str) -> Iterator[Source]:
    metadata = choice.grounding
    chunks = [_chunk(chunk) for chunk in _list(metadata, "groundingChunks")]
    encoded = text.encode()
    supported: set[int] = set()
    for support in _list(metadata, "groundingSupports"):
        segment = support.get("segment")
        start, end = _span(segment if isinstance(segment, Mapping) else {}, encoded)
        for index in support.get("groundingChunkIndices") or ():
            if isinstance(index, int) and 0 <= index < len(chunks) and chunks[index][0]:
                supported.add(index)
                yield *chunks[index], start, end
    for index, (url, title) in enumerate(chunks):
        if url and index not in supported:
            yield url, title, 0, len(text)


def _cited(choice: Choice, text: str) -> Iterator[Source]:
    """Yields the sources of passages that repeat a known work."""
    encoded = text.encode()
    for metadata in choice.citations:
        for citation in [*_list(metadata, "citations"), *_list(metadata, "citationSources")]:
            url = _address(citation.get("uri"))
            if url:
                yield url, str(citation.get("title") or ""), *_span(citation, encoded)


def _chunk(chunk: Mapping[str, Any]) -> tuple[str, str]:
    for kind in _KINDS:
        source = chunk.get(kind)
        if isinstance(source, Mapping):
            return _address(source.get("uri") or source.get("sourceUri")), str(source.get("title") or "")
    return "", ""


def _address(value: Any) -> str:
    return value if isinstance(value, str) and value.startswith(("http://", "https://")) else ""


def _span(segment: Mapping[str, Any], encoded: bytes) -> tuple[int, int]:
    """Returns the passage's start and end. Protocol buffers omit a start of zero."""
    start, end = _offset(segment.get("startIndex"), 0), _offset(segment.get("endIndex"), len(encoded))
    return _characters(encoded, start), _characters(encoded, max(start, end))


def _offset(value: Any, default: int) -> int:
    return value if isinstance(value, int) and value >= 0 else default


def _characters(encoded: bytes, offset: int) -> int:
    return len(encoded[:offset].decode("utf-8", "ignore"))


def _list(holder: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = holder.get(name)
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


UNFINISHED = "FINISH_REASON_UNSPECIFIED"
# `finish_reason` expresses the ends STOP and MAX_TOKENS fully.
_PLAIN_ENDS = ("", "STOP", "MAX_TOKENS")


class Text(msgspec.Struct, frozen=True):
    text: str


class Thought(msgspec.Struct, frozen=True):
    """`details` hold the entries that must come back; `text` may be empty."""

    text: str
    details: list[Mapping[str, Any]]


class Call(msgspec.Struct, frozen=True):
    position: int
    id: str
    name: str
    arguments: str
    extra: Mapping[str, Any]


class Image(msgspec.Struct, frozen=True):
    """OpenRouter's form: https://openrouter.ai/docs/features/multimodal/image-generation"""

    entry: Mapping[str, Any]


class Own(msgspec.Struct, frozen=True):
    entry: Mapping[str, Any]


Piece = Text | Thought | Call | Image | Own


@dataclass(slots=True)
class Choice:
    index: int
    seed: str  # Ids of calls are made from this seed where Google sends none.
    text: list[str] = field(default_factory=list)
    length: int = 0  # `length` counts the characters of the text.
    calls: int = 0
    ids: set[str] = field(default_factory=set)  # `ids` holds the ids of the calls.
    details: int = 0
    images: int = 0
    finished: str | int | None = None
    is_cut: bool = False
    message: str = ""  # `message` is the reason of the answer's end in Google's words.
    grounding: dict[str, Any] = field(default_factory=dict)
    citations: list[Mapping[str, Any]] = field(default_factory=list)
    ratings: list[Any] = field(default_factory=list)
    pages: list[Any] = field(default_factory=list)  # `pages` holds the pages that the URL tool has read for the answer.
    continuation: str = ""

    @property
    def has_content(self) -> bool:
        return bool(self.length or self.calls or self.images)

    def read(self, candidate: Candidate) -> Iterator[Piece]:
        if candidate.finish_reason and candidate.finish_reason != UNFINISHED:
            self.finished = candidate.finish_reason
            self.message = candidate.finish_message or self.message
        if candidate.content is not None:
            for part in candidate.content.parts or ():
                yield from self._part(part)
        if candidate.has_remarks():
            self._remarks(candidate)

    def cut_by_filter(self) -> None:
        """Marks an answer as filtered after it had begun; Google sends no finish reason for it."""
        if not self.finished:
            self.finished, self.is_cut = "PROHIBITED_CONTENT", True

    def specific(self) -> dict[str, Any]:
        reason = "" if self.is_cut else reason_named(self.finished)
        citations = [entry for source in self.citations for entry in _entries(source, "citations", "citationSources")]
        found = {
            "finishReason": "" if reason in _PLAIN_ENDS else reason,
            "finishMessage": "" if reason in _PLAIN_ENDS else self.message,
            "continuationToken": self.continuation,
            "groundingMetadata": self.grounding,
            "citationMetadata": {"citations": citations} if citations else {},
            "urlContextMetadata": {"urlMetadata": self.pages} if self.pages else {},
            "safetyRatings": self.ratings,
        }
        return {name: value for name, value in found.items() if value}

    def _remarks(self, candidate: Candidate) -> None:
        """A stream may send its sources bit by bit; the latest value of each field counts."""
        if has(candidate.grounding_metadata) and isinstance(metadata := plain(candidate.grounding_metadata), dict):
            self.grounding |= metadata
        if has(candidate.citation_metadata) and isinstance(metadata := plain(candidate.citation_metadata), dict):
            self.citations.append(metadata)
        if has(candidate.url_context_metadata) and isinstance(metadata := plain(candidate.url_context_metadata), dict):
            self.pages += _entries(metadata, "urlMetadata")
        if has(candidate.safety_ratings) and isinstance(ratings := plain(candidate.safety_ratings), list):
            self.ratings = ratings
        self.continuation = candidate.continuation_token or self.continuation

    def _part(self, part: Part) -> Iterator[Piece]:
        if part.function_call is not None:
            yield from self._call(part.function_call, part.thought_signature or "")
        elif part.text is not None:
            yield from self._thought(part) if part.thought else self._text(part.text, part.thought_signature or "")
        elif part.inline_data is not None and not part.thought:
            yield from self._image(part.inline_data, part.thought_signature or "")
        elif part.is_of_a_tool():
            yield Own(own_part(part, Place(self.length, self.calls, self.images)))
        elif part.thought_signature:
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
        """The id depends on the answer, not on how the stream was cut; it is different for every call."""
        return "call_" + blake2b(f"{self.seed}/{self.index}/{self.calls}".encode(), digest_size=12).hexdigest()


def _entries(holder: Mapping[str, Any], *names: str) -> list[Any]:
    return [entry for name in names if isinstance(entries := holder.get(name), list) for entry in entries]
