from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypedDict

from analytics.queries.search import Found, Preview, SearchHit
from analytics.queries.search_terms import occurrences
from analytics.request_log.record import RequestEntry
from analytics.wire.requests import request_entry
from core.lookup.registry import Kind, Match
from core.wire.shown import shown_as

_CUT = "…"


class LookupMatch(TypedDict):
    kind: Kind
    id: str
    label: str


class LookupResults(TypedDict):
    results: list[LookupMatch]


def lookup_results(matches: Sequence[Match]) -> LookupResults:
    return {"results": [shown_as(LookupMatch, match) for match in matches]}


class SearchResult(RequestEntry):
    prompt_highlights: list[tuple[int, int]]
    completion_highlights: list[tuple[int, int]]


class SearchResults(TypedDict):
    count: int
    has_more: bool
    searched_since: datetime | None
    results: list[SearchResult]


def search_results(found: Found) -> SearchResults:
    return {
        "count": len(found.hits),
        "has_more": found.more,
        "searched_since": found.searched_since,
        "results": [_entry(hit, found.folded_terms) for hit in found.hits],
    }


def _entry(hit: SearchHit, terms: Sequence[str]) -> SearchResult:
    prompt, prompt_highlights = _preview(hit.prompt, terms)
    completion, completion_highlights = _preview(hit.completion, terms)
    return {
        **request_entry(hit.request),
        "prompt_preview": prompt,
        "prompt_highlights": prompt_highlights,
        "completion_preview": completion,
        "completion_highlights": completion_highlights,
    }


def _preview(preview: Preview, terms: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    before = _CUT if preview.start else ""
    text = f"{before}{preview.text}{_CUT if preview.more else ''}"
    return text, [(start + len(before), end + len(before)) for start, end in occurrences(preview.text, terms)]
