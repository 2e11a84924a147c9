"""Presents what an id names."""

from __future__ import annotations

from uuid import UUID

from analytics.wire.lookup import LookupResults, lookup_results
from core.lookup import look_up


def lookup(project_id: UUID, text: str) -> LookupResults:
    """Returns the requests, sessions, users, keys, prompts and rollouts of this id or name; blanks around it do not
    count."""
    text = text.strip()
    return lookup_results(look_up(project_id, text) if text else [])
