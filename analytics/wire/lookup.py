"""The JSON of what an id names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from core.lookup.registry import Kind, Match


class LookupMatch(TypedDict):
    kind: Kind
    id: str
    label: str


class LookupResults(TypedDict):
    results: list[LookupMatch]


def lookup_results(matches: Sequence[Match]) -> LookupResults:
    return {"results": [{"kind": match.kind, "id": match.id, "label": match.label} for match in matches]}
