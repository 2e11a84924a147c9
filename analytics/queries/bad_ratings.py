"""Counts each prompt version's answered requests whose answer was rated bad within a day.

Few answers are rated, and not by chance, so a mean of ratings says little about a version. A bad rating is counted as
an event among all answered requests instead: an unrated answer counts as no event, and nothing is missing. The day must
be over for that, so later requests are counted apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.models import BAD_FEEDBACK
from analytics.queries.rollup_ranges import IS_EARLIER, PLANNED, SPEND_HOURS, TICK, clamp, same, union

WITHIN = timedelta(hours=24)

# The playground, the agent, judges, experiments and shadows choose their versions themselves, and nobody rates their
# answers.
OWN_SOURCES = ("playground", "agent", "judge", "experiment", "shadow")
_FIGURES = ("requests", "errors", "cancelled")


@dataclass(frozen=True)
class BadRatingFigures:
    """`bad_rate` is `bad_count` of `answered_count`, null without any. The counts that begin with `open` are of
    requests that may still be rated in time."""

    prompt_config_id: UUID
    prompt_version: int
    answered_count: int
    bad_count: int
    bad_rate: float | None
    open_answered_count: int
    open_bad_count: int


@dataclass(frozen=True)
class _CountRow:
    prompt_config_id: UUID
    prompt_version: int
    is_earlier: int
    requests: int


_BAD = """
SELECT
    f.prompt_config_id AS prompt_config_id, f.prompt_version AS prompt_version,
    toUInt8(f.request_ts < {later_from:DateTime64(6, 'UTC')}) AS is_earlier, uniqExact(f.request_id) AS requests
FROM feedback AS f FINAL
WHERE f.project_id = {project:UUID}
    AND f.ts >= {given_from:DateTime64(6, 'UTC')} AND f.ts <= {given_until:DateTime64(6, 'UTC')}
    AND f.request_known AND f.request_drop_date > toDate(now(), 'UTC')
    AND f.request_ts >= {start:DateTime64(6, 'UTC')} AND f.request_ts <= {end:DateTime64(6, 'UTC')}
    AND f.ts <= f.request_ts + toIntervalSecond({within:UInt32})
    AND f.score IN {bad:Array(UInt8)} AND f.outcome = 'success' AND f.source NOT IN {own:Array(String)}
    AND f.prompt_version > 0"""
# A rating may have an earlier time than its request by as much as the clocks of two servers differ.
_CLOCKS_DIFFER_BY = timedelta(minutes=10)


def list_bad_ratings(
    project_id: UUID, start: datetime, end: datetime, now: datetime, *, prompt_config_id: UUID | None = None
) -> Sequence[BadRatingFigures]:
    """The versions that answered a request from `start` to `end`, both included, by config and version.

    Requests made a day or more before `now` can no longer be rated in time.
    """
    later_from = min(max(clamp(start), now - WITHIN), clamp(end) + TICK)
    scope: dict[str, Any] = {"project": project_id, "own": list(OWN_SOURCES)}
    if prompt_config_id is not None:
        scope["config"] = prompt_config_id
    totals: defaultdict[tuple[UUID, int], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for row in _answered(scope, start, end, later_from):
        totals[row.prompt_config_id, row.prompt_version][0 if row.is_earlier else 2] += row.requests
    for row in _bad(scope, start, end, later_from):
        totals[row.prompt_config_id, row.prompt_version][1 if row.is_earlier else 3] += row.requests
    return [
        BadRatingFigures(*version, answered, bad, bad / answered if answered else None, open_answered, open_bad)
        for version, (answered, bad, open_answered, open_bad) in sorted(totals.items())
        if answered or open_answered
    ]


def _answered(scope: Mapping[str, Any], start: datetime, end: datetime, later_from: datetime) -> Sequence[_CountRow]:
    keys = {
        "prompt_config_id": same("t.prompt_config_id"),
        "prompt_version": same("t.prompt_version"),
        "is_earlier": IS_EARLIER,
    }
    source, params = union(
        scope["project"],
        [SPEND_HOURS],
        later_from,
        end,
        keys=keys,
        figures=_FIGURES,
        where=f"t.prompt_version > 0 AND t.source NOT IN {{own:Array(String)}}{_of_config('t', scope)}",
        earlier=(start, later_from - TICK),
    )
    sql = (
        "SELECT f.prompt_config_id AS prompt_config_id, f.prompt_version AS prompt_version, f.is_earlier AS is_earlier,"
        " sum(f.requests) - sum(f.errors) - sum(f.cancelled) AS requests"
        f" FROM {source} AS f GROUP BY f.prompt_config_id, f.prompt_version, f.is_earlier"
    )
    values = {"later_from": later_from, **params, **scope}
    return client.query(sql, values, row=_CountRow, name="bad_ratings.answered", database_settings=PLANNED)


def _bad(scope: Mapping[str, Any], start: datetime, end: datetime, later_from: datetime) -> Sequence[_CountRow]:
    first, last = clamp(start), clamp(end)
    values: dict[str, Any] = {
        **scope,
        "start": first,
        "end": last,
        "given_from": clamp(first - _CLOCKS_DIFFER_BY),
        "given_until": clamp(last + WITHIN),
        "later_from": later_from,
        "within": int(WITHIN.total_seconds()),
        "bad": list(BAD_FEEDBACK),
    }
    sql = f"{_BAD}{_of_config('f', scope)} GROUP BY prompt_config_id, prompt_version, is_earlier"
    return client.query(sql, values, row=_CountRow, name="bad_ratings.bad")


def _of_config(rows: str, scope: Mapping[str, Any]) -> str:
    return f" AND {rows}.prompt_config_id = {{config:UUID}}" if "config" in scope else ""
