"""Translates the citations of Cohere's answers to OpenAI's `url_citation` annotations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from integrations.providers.cohere.usage import object_in


def url_citations(citation: Mapping[str, Any], offset: int) -> Iterator[dict[str, Any]]:
    """Yields annotations for the sources with an address. `offset` is where the cited block starts in `content`."""
    if citation.get("type") not in (None, "TEXT_CONTENT"):
        return
    start, end = citation.get("start"), citation.get("end")
    if not isinstance(start, int) or not isinstance(end, int):
        return
    sources = citation.get("sources")
    for source in sources if isinstance(sources, list) else ():
        if isinstance(source, Mapping) and (url := _address(source)):
            yield {
                "type": "url_citation",
                "url_citation": {
                    "url": url,
                    "title": _title(source),
                    "start_index": start + offset,
                    "end_index": end + offset,
                },
            }


def _address(source: Mapping[str, Any]) -> str:
    held = _held(source)
    for candidate in (held.get("url"), source.get("id")):
        if isinstance(candidate, str) and candidate.startswith(("http://", "https://")):
            return candidate
    return ""


def _title(source: Mapping[str, Any]) -> str:
    title = _held(source).get("title")
    return title if isinstance(title, str) else ""


def _held(source: Mapping[str, Any]) -> Mapping[str, Any]:
    return object_in(source, "tool_output") or object_in(source, "document")
