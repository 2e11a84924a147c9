from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from uuid import UUID

from analytics.clickhouse import client


@dataclass(frozen=True)
class DayCost:
    """`unpriced` of the `requests` have an unknown cost, which is not in `cost_usd`."""

    day: date
    model: str
    requests: int
    unpriced: int
    cost_usd: Decimal


_SQL = """
SELECT d.day AS day, toString(d.model) AS model, sum(d.requests) AS requests, sum(d.unpriced) AS unpriced,
    sum(d.cost_usd) AS cost_usd
FROM requests_daily AS d
WHERE d.project_id = {project:UUID} AND d.day BETWEEN {first:Date} AND {last:Date} AND d.provider = {provider:String}
GROUP BY day, model ORDER BY day, model
"""


def list_day_costs(project_id: UUID, provider: str, first: date, last: date) -> Sequence[DayCost]:
    """Both days (UTC) are included."""
    values = {"project": project_id, "provider": provider, "first": first, "last": last}
    return client.query(_SQL, values, row=DayCost, name="costs.days")
