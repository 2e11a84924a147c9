"""Translates the sources of an answer to OpenAI's `url_citation` annotations. Google counts the bytes of the text in
UTF-8 (https://ai.google.dev/gemini-api/docs/google-search#attributing_sources), OpenAI its characters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from integrations.providers.google.parts import Choice

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
    return [_annotation(url, title, start, end) for (url, start, end), title in unique.items()]


Source = tuple[str, str, int, int]  # A source is (address, title, start, end).


def _annotation(url: str, title: str, start: int, end: int) -> dict[str, Any]:
    return {
        "type": "url_citation",
        "url_citation": {"url": url, "title": title, "start_index": start, "end_index": end},
    }


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
