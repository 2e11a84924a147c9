"""What changes prices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from integrations.models import ModelPrice, PriceSource
from integrations.pricing import shipped
from integrations.pricing.entries import PriceEntry
from integrations.signals import prices_changed

_COSTS = ("input_cost_per_1m", "output_cost_per_1m", "cache_read_cost_per_1m", "cache_write_cost_per_1m")
_BATCH = 500


@dataclass(frozen=True, slots=True)
class LoadedPrices:
    """Models by what became of them. `skipped`: as they were, or priced by hand."""

    added: int
    updated: int
    skipped: int


def load_shipped_prices() -> LoadedPrices:
    """Puts the shipped list into ModelPrice. Idempotent; `manual` prices stay, and so do models the list lacks."""
    return store_prices(shipped.entries())


def store_prices(entries: Iterable[tuple[str, PriceEntry]]) -> LoadedPrices:
    """Adds and updates (source, entry) pairs in one transaction. Of two entries for one model the first counts."""
    wanted: dict[tuple[str, str], tuple[str, PriceEntry]] = {}
    for source, entry in entries:
        wanted.setdefault((entry.provider, entry.model), (source, entry))
    with transaction.atomic():
        known = {(row.provider, row.model): row for row in ModelPrice.objects.select_for_update()}
        added = [_row(source, entry) for key, (source, entry) in wanted.items() if key not in known]
        changed = [
            row
            for key, (source, entry) in wanted.items()
            if (row := known.get(key)) is not None and row.source != PriceSource.MANUAL and _set(row, source, entry)
        ]
        ModelPrice.objects.bulk_create(added, batch_size=_BATCH)
        ModelPrice.objects.bulk_update(changed, [*_COSTS, "source", "updated_at"], batch_size=_BATCH)
        if added or changed:
            # Bulk writes send no signals of their own.
            transaction.on_commit(_announce)
    return LoadedPrices(len(added), len(changed), len(wanted) - len(added) - len(changed))


def _announce() -> None:
    prices_changed.send(sender=ModelPrice)


def _row(source: str, entry: PriceEntry) -> ModelPrice:
    row = ModelPrice(provider=entry.provider, model=entry.model)
    _set(row, source, entry)
    return row


def _set(row: ModelPrice, source: str, entry: PriceEntry) -> bool:
    """Whether anything changed."""
    costs = (entry.input, entry.output, entry.cache_read, entry.cache_write)
    if row.source == source and all(getattr(row, name) == cost for name, cost in zip(_COSTS, costs, strict=True)):
        return False
    for name, cost in zip(_COSTS, costs, strict=True):
        setattr(row, name, cost)
    row.source = source
    row.updated_at = timezone.now()
    return True
