"""Finds a page of sessions by cost. Sessions are nearly as many as requests, so that the page is found first, by their
hashes, and the figures are read for it alone."""

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
    CostRow,
    DimensionRow,
    Scope,
    ordered,
    rows_of,
    totals_of,
)
from analytics.queries.dimensions import Dimension, rollups_of, source_of
from analytics.queries.rollup_ranges import FIGURES, PLANNED, union

# The sessions that are read beyond the end of a page, because those of the same cost as its last one may belong to it.
_SESSIONS_BEYOND = 200
# One table of sums is less work than 256 of them, up to a million sessions; of two million it takes twice as long.
_FEW_TABLES = {**PLANNED, "group_by_two_level_threshold": 1_000_000, "group_by_two_level_threshold_bytes": 0}


@dataclass(frozen=True)
class _HashedCost:
    """The cost of the session with this hash, and the number of all `sessions`."""

    hash: int
    cost_usd: Decimal
    sessions: int


def page_of_sessions(scope: Scope, before: Scope, limit: int, offset: int) -> CostPage:
    """Returns a page of the sessions in `scope`, with their cost in the period `before`."""
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
        partial(rows_of, scope, Dimension.SESSION, row=DimensionRow, **chosen),
        partial(rows_of, before, Dimension.SESSION, row=CostRow, **chosen),
    )
    if found is not None:
        keys = ordered(figures.values())[found.skipped : found.skipped + limit]
    return CostPage(count, keys, figures, costs_before, total, total_before)


def list_sessions(scope: Scope, limit: int, offset: int) -> list[str]:
    """Returns a page of the ids of sessions, by falling cost, then falling requests, then id."""
    _, dearest = _dearest_sessions(scope, limit=offset + limit + _SESSIONS_BEYOND)
    found = _of_page(dearest, limit, offset)
    if found is None:
        return list_names(scope, Dimension.SESSION, limit=limit, offset=offset)[1]
    rows = rows_of(scope, Dimension.SESSION, session_hashes=found.hashes, row=CostRow)
    return ordered(rows.values())[found.skipped : found.skipped + limit]


@dataclass(frozen=True)
class _SessionsOfPage:
    """The hashes of the sessions that a page may hold, by falling cost. The page begins after the first
    `skipped` of them."""

    hashes: Sequence[int]
    skipped: int


def _of_page(dearest: Sequence[_HashedCost], limit: int, offset: int) -> _SessionsOfPage | None:
    """Returns the sessions of the page and those that cost the same as its first or its last; None when those are more
    than were read."""
    page = dearest[offset : offset + limit]
    if not page:
        return _SessionsOfPage([], 0)
    most, least = page[0].cost_usd, page[-1].cost_usd
    if len(dearest) == offset + limit + _SESSIONS_BEYOND and dearest[-1].cost_usd == least:
        return None
    before = sum(one.cost_usd > most for one in dearest)
    return _SessionsOfPage([one.hash for one in dearest if most >= one.cost_usd >= least], offset - before)


def _dearest_sessions(scope: Scope, *, limit: int) -> tuple[int, Sequence[_HashedCost]]:
    """Returns the number of sessions, and the first `limit` by falling cost. They are grouped by their hashes, which is
    half the work of grouping by their names."""
    source, params = union(
        rollups_of(Dimension.SESSION, scope.start, scope.end),
        scope.start,
        scope.end,
        keys={"hash": SESSION_HASH},
        figures=("cost_usd",),
        where_request=source_of(Dimension.SESSION).where_request,
        operation=scope.operation,
    )
    sql = (
        f"SELECT f.hash AS hash, {FIGURES['cost_usd'].total} AS cost_usd, count() OVER () AS sessions"
        f" FROM {source} AS f GROUP BY f.hash ORDER BY cost_usd DESC LIMIT {{limit:UInt64}}"
    )
    values = {**params, "project": scope.project_id, "limit": limit}
    found = visible.query(sql, values, row=_HashedCost, name="spend.dearest", database_settings=_FEW_TABLES)
    return (found[0].sessions if found else 0), found
