"""The ledger of what an experiment spends (`core.ledger`). A dead worker's reservation stays: the provider may have
counted the request."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from core import ledger
from gateway.models import Experiment


def reserve(experiment_id: UUID, amount: Decimal) -> bool:
    """Returns False if the experiment has no room for the request's highest cost."""
    return ledger.reserve(Experiment.objects.filter(pk=experiment_id), amount, limit="max_cost_usd")


def settle(experiment_id: UUID, *, reserved: Decimal, cost: Decimal) -> None:
    """Books what a request cost in place of what was reserved for it."""
    if reserved or cost:
        ledger.settle(Experiment.objects.filter(pk=experiment_id), reserved=reserved, cost=cost)
