from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING
from uuid import UUID

from analytics.queries.request_filters import RequestFilter

if TYPE_CHECKING:
    from analytics.queries.requests import RequestRow


class RequestSort(StrEnum):
    """The order of a list, by a field of a request.

    Requests without the value come last in a descending list, and are left out of an ascending one. Ties are ordered by
    time and id in the list's direction.
    """

    NEWEST = "-created_at"
    OLDEST = "created_at"
    SLOWEST = "-latency_ms"
    FASTEST = "latency_ms"
    DEAREST = "-cost_usd"
    CHEAPEST = "cost_usd"
    SLOWEST_TO_BEGIN = "-ttft_ms"
    FASTEST_TO_BEGIN = "ttft_ms"

    @property
    def descending(self) -> bool:
        return self.value.startswith("-")

    @property
    def by_time(self) -> bool:
        return self in (RequestSort.NEWEST, RequestSort.OLDEST)

    @property
    def column(self) -> str:
        return "" if self.by_time else self.value.removeprefix("-")


# The types of the columns in ClickHouse that lists are ordered by. A value that a request does not have is stored as 0,
# so it comes last in a descending list as it is.
_TYPES = {"latency_ms": "UInt32", "cost_usd": "Decimal(18, 10)", "ttft_ms": "UInt32"}


@dataclass(frozen=True, slots=True)
class Position:
    """The place of one request in a list. `value` is what the list is ordered by, 0 in a list by time. The page follows
    the request or, with `backward`, precedes it."""

    value: Decimal
    ts: datetime
    request_id: UUID
    backward: bool = False


def position_of(row: RequestRow, sort: RequestSort, *, backward: bool = False) -> Position:
    value = Decimal(0) if sort.by_time else Decimal(getattr(row, sort.column))
    return Position(value, row.ts, row.request_id, backward)


def listed(filters: RequestFilter, sort: RequestSort) -> RequestFilter:
    if sort is RequestSort.CHEAPEST and filters.min_cost_usd is None:
        return replace(filters, min_cost_usd=Decimal(0))
    if sort is RequestSort.FASTEST_TO_BEGIN and filters.min_ttft_ms is None:
        return replace(filters, min_ttft_ms=0)
    return filters


def value_parameter(sort: RequestSort, name: str) -> str:
    return f"{{{name}:{_TYPES[sort.column]}}}"


def stored_value(sort: RequestSort, value: Decimal) -> int | Decimal:
    return int(value) if _TYPES[sort.column] == "UInt32" else value


def order(sort: RequestSort, *, backward: bool) -> str:
    direction = " DESC" if sort.descending != backward else ""
    columns = ["ts", "request_id"] if sort.by_time else [sort.column, "ts", "request_id"]
    return "ORDER BY " + ", ".join(f"{column}{direction}" for column in columns)


def comparison(sort: RequestSort, *, backward: bool) -> str:
    return "<" if sort.descending != backward else ">"
