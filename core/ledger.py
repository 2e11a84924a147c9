"""The ledger of a budget: conditional updates of one row, so concurrent workers never overspend.

A request's maximum cost is reserved before it is sent, and its actual cost is booked afterwards. The row has the
columns `spent_usd`, `reserved_usd` and one with the limit.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.db.models import BigIntegerField, DecimalField, F, QuerySet, Sum, Value
from django.db.models.functions import Cast, Round

NOTHING = Decimal(0)

# SQLite keeps decimals as doubles. Rounded to the places of the columns, sums and comparisons are exact there too.
_PLACES = 10


class SumOfDollars(Sum):
    """Sums a column of dollars exactly, on SQLite too, as integers in units of the last place; None without rows."""

    def __init__(self, name: str, **options: Any) -> None:
        one = Value(Decimal(10**_PLACES), DecimalField(max_digits=20, decimal_places=0))
        units = Round(F(name) * one, output_field=DecimalField(max_digits=30, decimal_places=0))
        super().__init__(Cast(units, BigIntegerField()), **options)

    @staticmethod
    def convert_value(value: int | None, expression: Any, connection: Any) -> Decimal | None:
        return None if value is None else Decimal(value).scaleb(-_PLACES)


def reserve(row: QuerySet[Any], amount: Decimal, *, limit: str) -> bool:
    """Reserves a request's maximum cost. Returns False if the row has no room below its column `limit`."""
    needed = row.annotate(needed=Round(F("spent_usd") + F("reserved_usd") + amount, _PLACES))
    there_is_room = needed.filter(needed__lte=F(limit))
    return bool(there_is_room.update(reserved_usd=Round(F("reserved_usd") + amount, _PLACES)))


def settle(row: QuerySet[Any], *, reserved: Decimal, cost: Decimal) -> None:
    row.update(
        spent_usd=Round(F("spent_usd") + cost, _PLACES), reserved_usd=Round(F("reserved_usd") - reserved, _PLACES)
    )
