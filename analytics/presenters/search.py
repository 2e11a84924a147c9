"""Presents what a search finds: requests by their texts, and what an id names."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from analytics.queries.search import SearchFilter, search
from analytics.wire.search import LookupResults, SearchResults, lookup_results, search_results
from core.lookup.registry import Kind, look_up
from core.roles import Right


def search_texts(project_id: UUID, filters: SearchFilter, limit: int) -> SearchResults:
    """Returns the newest requests in whose texts all terms occur, with the places of the terms."""
    return search_results(search(project_id, filters, limit=limit))


def lookup(
    project_id: UUID, text: str, rights: Collection[Right], kinds: Collection[Kind] = tuple(Kind)
) -> LookupResults:
    """Returns the requests, sessions, users, keys, prompts and rollouts of this id or name; blanks around it do not
    count. Records of other `kinds`, and those for which there is no right among `rights`, are left out."""
    text = text.strip()
    return lookup_results(look_up(project_id, text, rights, kinds) if text else [])
