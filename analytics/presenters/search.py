"""Presents what is found in the texts of requests."""

from __future__ import annotations

from uuid import UUID

from analytics.queries.search import SearchFilter, search
from analytics.wire.search import SearchResults, search_results


def search_texts(project_id: UUID, filters: SearchFilter, limit: int) -> SearchResults:
    """Returns the newest requests in whose texts all terms occur, with the places of the terms."""
    return search_results(search(project_id, filters, limit=limit))
