"""Search results on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analytics.queries.search import Found, Preview, SearchHit
from analytics.queries.search_terms import occurrences
from analytics.serializers.requests import request_entry

_CUT = "…"


def search_results(found: Found) -> dict[str, Any]:
    return {
        "count": len(found.hits),
        "has_more": found.more,
        "searched_since": found.searched_since,
        "results": [_entry(hit, found.folded_terms) for hit in found.hits],
    }


def _entry(hit: SearchHit, terms: Sequence[str]) -> dict[str, Any]:
    return {
        **request_entry(hit.request),
        **_preview("prompt", hit.prompt, terms),
        **_preview("completion", hit.completion, terms),
    }


def _preview(name: str, preview: Preview, terms: Sequence[str]) -> dict[str, Any]:
    """The text around the match, and the places of the terms in it: [start, end) in characters."""
    before = _CUT if preview.start else ""
    text = f"{before}{preview.text}{_CUT if preview.more else ''}"
    places = [[start + len(before), end + len(before)] for start, end in occurrences(preview.text, terms)]
    return {f"{name}_preview": text, f"{name}_highlights": places}
