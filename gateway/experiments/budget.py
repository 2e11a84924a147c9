"""The ledger of what an experiment spends (`core.ledger`). A reservation whose worker died stays: the provider may have
counted the request."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from core import ledger
from gateway.models import Experiment


def reserve(experiment_id: UUID, amount: Decimal) -> bool:
    """Reserves what a request may cost at most. Returns False where the experiment has no room for it."""
    return ledger.reserve(Experiment.objects.filter(pk=experiment_id), amount, limit="max_cost_usd")


def settle(experiment_id: UUID, *, reserved: Decimal, cost: Decimal) -> None:
    """Books what a request cost in place of what was reserved for it."""
    ledger.settle(Experiment.objects.filter(pk=experiment_id), reserved=reserved, cost=cost)
