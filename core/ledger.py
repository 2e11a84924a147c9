"""The ledger of a budget: conditional updates of one row, so that no number of workers spends more than it may.

What a request may cost at most is reserved before it is sent, and what it did cost is booked afterwards. The row has
the columns `spent_usd` and `reserved_usd`, and one with the limit.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.db.models import F, QuerySet
from django.db.models.functions import Round

NOTHING = Decimal(0)

# SQLite keeps decimals as doubles. Rounded to the places of the columns, sums and comparisons are exact there too.
_PLACES = 10


def reserve(row: QuerySet[Any], amount: Decimal, *, limit: str) -> bool:
    """Reserves what a request may cost at most. Returns False where the row has no room for it below its column
    `limit`."""
    needed = row.annotate(needed=Round(F("spent_usd") + F("reserved_usd") + amount, _PLACES))
    there_is_room = needed.filter(needed__lte=F(limit))
    return bool(there_is_room.update(reserved_usd=Round(F("reserved_usd") + amount, _PLACES)))


def settle(row: QuerySet[Any], *, reserved: Decimal, cost: Decimal) -> None:
    """Books what a request cost in place of what was reserved for it."""
    row.update(
        spent_usd=Round(F("spent_usd") + cost, _PLACES), reserved_usd=Round(F("reserved_usd") - reserved, _PLACES)
    )
