"""Converts citations to OpenAI's annotations (https://platform.openai.com/docs/api-reference/chat/object)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def url_citation(citation: Any, start: int, end: int) -> Mapping[str, Any] | None:
    """Returns the annotation for a citation whose text lies between `start` and `end` in the whole answer. None for
    citations of documents, which have no address: annotations name web pages only."""
    if not isinstance(citation, Mapping):
        return None
    url = citation.get("url") or citation.get("source")
    if not isinstance(url, str) or not url.startswith(("https://", "http://")):
        return None
    fields = {"url": url, "title": str(citation.get("title") or ""), "start_index": start, "end_index": end}
    return {"type": "url_citation", "url_citation": fields}


def url_citations(citations: Any, start: int, end: int) -> list[Mapping[str, Any]]:
    """Returns the annotations of a block, each page once even when several of its passages are cited."""
    found: dict[str, Mapping[str, Any]] = {}
    for citation in citations if isinstance(citations, list) else ():
        annotation = url_citation(citation, start, end)
        if annotation is not None:
            found.setdefault(annotation["url_citation"]["url"], annotation)
    return list(found.values())
