"""Finds a page of sessions by cost. Sessions are nearly as many as requests, so the page is found first, by their
hashes, and the figures are read only for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from analytics.queries import visible
from analytics.queries.dimension_costs.by_keys import list_names
from analytics.queries.dimension_costs.figures import (
    SESSION_HASH,
    CostPage,
    KeyCosts,
    KeySums,
    ordered,
    rows_of,
    totals_of,
)
from analytics.queries.dimensions import Dimension, rollups_of, source_of
from analytics.queries.rollup_ranges import PLANNED
from analytics.queries.summed import Scope, summed

# The sessions that are read beyond the end of a page, because those of the same cost as its last one may belong to it.
_SESSIONS_BEYOND = 200
# One table of sums is less work than 256 of them, up to a million sessions; of two million it takes twice as long.
_FEW_TABLES = {**PLANNED, "group_by_two_level_threshold": 1_000_000, "group_by_two_level_threshold_bytes": 0}


@dataclass(frozen=True)
class _HashedCost:
    hash: int
    cost_usd: Decimal
    sessions: int


def page_of_sessions(scope: Scope, before: Scope, limit: int, offset: int) -> CostPage:
    (total, total_before), (count, dearest) = visible.both_visible(
        scope.project_id,
        partial(totals_of, scope, before),
        partial(_dearest_sessions, scope, limit=offset + limit + _SESSIONS_BEYOND),
    )
    found = _of_page(dearest, limit, offset)
    if found is None:
        _, keys = list_names(scope, Dimension.SESSION, limit=limit, offset=offset)
        chosen: dict[str, Any] = {"keys": keys}
    else:
        chosen = {"session_hashes": found.hashes}
    figures, costs_before = visible.both_visible(
        scope.project_id,
        partial(rows_of, scope, Dimension.SESSION, row=KeySums, **chosen),
        partial(rows_of, before, Dimension.SESSION, row=KeyCosts, **chosen),
    )
    if found is not None:
        keys = ordered(figures.values())[found.skipped : found.skipped + limit]
    return CostPage(count, keys, figures, costs_before, total, total_before)


def list_sessions(scope: Scope, limit: int, offset: int) -> list[str]:
    _, dearest = _dearest_sessions(scope, limit=offset + limit + _SESSIONS_BEYOND)
    found = _of_page(dearest, limit, offset)
    if found is None:
        return list_names(scope, Dimension.SESSION, limit=limit, offset=offset)[1]
    rows = rows_of(scope, Dimension.SESSION, session_hashes=found.hashes, row=KeyCosts)
    return ordered(rows.values())[found.skipped : found.skipped + limit]


@dataclass(frozen=True)
class _SessionsOfPage:
    hashes: Sequence[int]
    skipped: int


def _of_page(dearest: Sequence[_HashedCost], limit: int, offset: int) -> _SessionsOfPage | None:
    page = dearest[offset : offset + limit]
    if not page:
        return _SessionsOfPage([], 0)
    most, least = page[0].cost_usd, page[-1].cost_usd
    if len(dearest) == offset + limit + _SESSIONS_BEYOND and dearest[-1].cost_usd == least:
        return None
    before = sum(one.cost_usd > most for one in dearest)
    return _SessionsOfPage([one.hash for one in dearest if most >= one.cost_usd >= least], offset - before)


def _dearest_sessions(scope: Scope, *, limit: int) -> tuple[int, Sequence[_HashedCost]]:
    """The number of sessions, and the first `limit` by falling cost. Grouping by hash is half the work of grouping by
    name."""
    rollups, where = rollups_of(Dimension.SESSION, scope.start, scope.end), source_of(Dimension.SESSION).where_request
    found = summed(
        _HashedCost,
        scope.of(*rollups, keys={"hash": SESSION_HASH}, where_request=where),
        by=["hash"],
        also=["cost_usd"],
        outer={"sessions": "count() OVER ()"},
        tail="ORDER BY cost_usd DESC LIMIT {limit:UInt64}",
        values={"limit": limit},
        run=visible.query,
        settings=_FEW_TABLES,
        name="spend.dearest",
    )
    return (found[0].sessions if found else 0), found
