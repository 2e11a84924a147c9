"""Counts the errors in a range of time by provider and kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.rollup_ranges import ERROR_DAYS, PLANNED, same, totals, union


@dataclass(frozen=True)
class Failure:
    """One kind of error at one provider; the provider is empty when the request came to none."""

    provider: str
    error_type: str
    error_code: str
    status_codes: list[int]
    models: list[str]
    requests: int
    last_at: datetime


_KEYS = {
    "provider": same("toString(t.provider)"),
    "error_type": same("toString(t.error_type)"),
    "error_code": same("toString(t.error_code)"),
    "model": same("toString(t.model)"),
    "status_code": same("t.status_code"),
}
_FAILED = "t.outcome IN ('error', 'interrupted')"


def list_failures(project_id: UUID, start: datetime, end: datetime, *, operation: str = "") -> Sequence[Failure]:
    """Returns all kinds of errors, the most frequent first, then by provider and name."""
    source, params = union(
        [ERROR_DAYS],
        start,
        end,
        keys=_KEYS,
        figures=("requests", "last_at"),
        where_request=_FAILED,
        operation=operation,
    )
    sql = (
        "SELECT f.provider AS provider, f.error_type AS error_type, f.error_code AS error_code,"
        " arraySort(groupUniqArray(f.status_code)) AS status_codes,"
        f" arraySort(groupUniqArrayIf(f.model, f.model != '')) AS models, {totals('requests', 'last_at')}"
        f" FROM {source} AS f GROUP BY f.provider, f.error_type, f.error_code"
        " ORDER BY requests DESC, provider, error_type, error_code"
    )
    values = {**params, "project": project_id}
    return client.query(sql, values, row=Failure, name="errors", database_settings=PLANNED)
