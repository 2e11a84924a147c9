from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from analytics.clickhouse import client
from analytics.clickhouse.rollups import list_rollups
from analytics.figures.query import FigureQuery, series_of, values_of
from analytics.figures.registry import FIGURES, FigureSource
from analytics.parameters.ranges import TimeRange
from analytics.queries.usage import Interval
from analytics.reconciliation.comparison import differing
from analytics.reconciliation.units import list_units

COLUMNS = (
    "project_id", "ts", "request_id", "outcome", "status_code", "session_id", "user_id", "provider", "model",
    "error_type", "error_code", "latency_ms", "ttft_ms", "cost_known", "cost_usd", "retention_days", "prompt",
    "completion", "request", "response",
)  # fmt: skip
TABLE = "ingest"
_DAYS = 3
_RETENTION_DAYS = 400
_GROUPS = ("", "model", "provider")
_PERCENTILE = re.compile(r"p\d+_")
_DIGEST = """
SELECT count() AS rows, uniqExact(request_id) AS ids, sum(cityHash64(request_id, ts, model, recorded_at)) AS checksum
FROM requests WHERE project_id = {project:UUID}
"""
_PAYLOADS = "SELECT count() FROM payloads WHERE project_id = {project:UUID}"


@dataclass(frozen=True)
class Digest:
    rows: int
    ids: int
    checksum: int


def make_rows(project: UUID, number: int) -> list[tuple[Any, ...]]:
    chance = random.Random(project.int)  # noqa: S311 - nothing secret
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    rows = []
    for index in range(number):
        failed = index % 7 == 0
        ts = midnight - timedelta(days=1 + index % _DAYS, seconds=-chance.randrange(86_400))
        rows.append((
            project, ts, uuid4(), "error" if failed else "success", 500 if failed else 200,
            f"session-{index % 11}", f"user-{index % 5}", "openai", f"model-{index % 3}",
            "api_error" if failed else "", "provider_error" if failed else "", chance.randrange(1, 5000),
            chance.randrange(0, 500), True, Decimal(chance.randrange(1, 10**6)) / 10**8, _RETENTION_DAYS,
            f"question {index}", f"answer {index}", "{}", "{}",
        ))  # fmt: skip
    return rows


def digest(project: UUID) -> Digest:
    [found] = client.query(_DIGEST, {"project": project}, row=Digest, name="proof.digest", fresh=("requests",))
    return found


def count_texts(project: UUID) -> int:
    [found] = client.query(_PAYLOADS, {"project": project}, row=int, name="proof.payloads", fresh=("payloads",))
    return found


def differing_rollups(project: UUID) -> Sequence[str]:
    units = list_units(project, date(1970, 1, 1))
    return [rollup.table for rollup in list_rollups() if differing(rollup, project, units)]


def figures(project: UUID) -> Mapping[str, Any]:
    """Returns every figure about requests, in total, by group, and by day, except percentiles.

    Percentiles are estimates that depend on the order of merges.
    """
    names = [
        figure.name
        for figure in FIGURES.values()
        if figure.source is FigureSource.REQUESTS and not _PERCENTILE.match(figure.name)
    ]
    now = datetime.now(UTC)
    days = TimeRange(now - timedelta(days=_DAYS + 1), now.replace(hour=0, minute=0, second=0, microsecond=0))
    first = FigureQuery(figure=names[0])
    found: dict[str, Any] = {
        f"by {group}" if group else "total": values_of(
            project, FigureQuery(figure=names[0], group_by=group), names, days
        )
        for group in _GROUPS
    }
    return found | {"by day": series_of(project, first, days, figures=names, interval=Interval.DAY)}
