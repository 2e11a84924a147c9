"""The ledger of what an experiment spends: conditional updates, so that no number of workers spends more than it may.

What a request may cost at most is reserved before it is sent, and what it did cost is booked afterwards. A reservation
whose worker died stays: the provider may have counted the request.
"""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Round

from gateway.models import Experiment

# SQLite keeps decimals as doubles. Rounded to the places of the columns, sums and comparisons are exact there too.
_PLACES = 10


def reserve(experiment_id: UUID, amount: Decimal) -> bool:
    """Reserves what a request may cost at most. Returns False where the experiment has no room for it."""
    rows = Experiment.objects.annotate(needed=Round(F("spent_usd") + F("reserved_usd") + amount, _PLACES))
    there_is_room = rows.filter(pk=experiment_id, needed__lte=F("max_cost_usd"))
    return bool(there_is_room.update(reserved_usd=Round(F("reserved_usd") + amount, _PLACES)))


def settle(experiment_id: UUID, *, reserved: Decimal, cost: Decimal) -> None:
    """Books what a request cost in place of what was reserved for it."""
    Experiment.objects.filter(pk=experiment_id).update(
        spent_usd=Round(F("spent_usd") + cost, _PLACES), reserved_usd=Round(F("reserved_usd") - reserved, _PLACES)
    )
