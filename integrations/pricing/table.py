"""The price table for all projects: the catalogs' prices in the order of the catalogs, overridden by operators' prices.
Every change opens and closes periods, so that a model's price can be found for any time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db import transaction
from django.utils import timezone

from integrations.pricing.entries import PriceEntry
from integrations.pricing.models import CatalogPrice, CatalogState, ModelPrice, PriceFields, PriceSource
from integrations.pricing.periods import FIGURES, close_periods, open_periods
from integrations.pricing.reading import READERS, Key, Reading
from integrations.pricing.shipped import SANDBOX, SANDBOX_PRICE
from integrations.signals import prices_changed

_BATCH = 500
Row = TypeVar("Row", bound=PriceFields)


@dataclass(frozen=True, slots=True)
class TableChange:
    added: int
    updated: int
    removed: int
    skipped: int


def lock_table() -> dict[str, CatalogState]:
    """Locks the catalogs' states, and with them the prices for all projects, until the transaction ends."""
    for source in READERS:
        CatalogState.objects.get_or_create(source=source)
    return {row.source: row for row in CatalogState.objects.select_for_update().order_by("source")}


def replace_catalog(source: str, reading: Reading) -> None:
    """Refused models keep their price; absent ones lose theirs. Call it in a transaction that holds `lock_table`;
    `rebuild` applies the change."""
    known = {(row.provider, row.model): row for row in CatalogPrice.objects.filter(source=source)}
    added = [filled(CatalogPrice(source=source), found) for key, found in reading.entries.items() if key not in known]
    changed = [
        filled(row, found)
        for key, found in reading.entries.items()
        if (row := known.get(key)) is not None and costs_of(row) != _costs(found)
    ]
    gone = [row.pk for key, row in known.items() if key not in reading.entries and key not in reading.refused]
    CatalogPrice.objects.bulk_create(added, batch_size=_BATCH)
    CatalogPrice.objects.bulk_update(changed, FIGURES, batch_size=_BATCH)
    for start in range(0, len(gone), _BATCH):
        CatalogPrice.objects.filter(pk__in=gone[start : start + _BATCH]).delete()


def rebuild(changed_by: str, refused: Collection[Key] = ()) -> TableChange:
    """Updates ModelPrice and its periods to the catalogs' current prices; `manual` rows stay. Call it in a transaction
    that holds `lock_table`."""
    prices = _catalog_prices()
    known = {(row.provider, row.model): row for row in ModelPrice.objects.filter(project=None).select_for_update()}
    synced = {key: row for key, row in known.items() if row.source != PriceSource.MANUAL}
    now = timezone.now()
    added = [_set(ModelPrice(), row, now) for key, row in prices.items() if key not in known]
    changed = [
        _set(row, prices[key], now) for key, row in synced.items() if key in prices and _differs(row, prices[key])
    ]
    removed = [row for key, row in synced.items() if key not in prices]
    _store(added, changed, removed, changed_by, now)
    return TableChange(len(added), len(changed), len(removed), len({*prices, *refused}) - len(added) - len(changed))


def catalog_price(provider: str, model: str) -> CatalogPrice | None:
    found = {row.source: row for row in CatalogPrice.objects.filter(provider=provider, model=model)}
    if (provider, model) == (SANDBOX_PRICE.provider, SANDBOX_PRICE.model):
        return filled(CatalogPrice(source=SANDBOX), SANDBOX_PRICE)
    return next((found[source] for source in READERS if source in found), None)


def costs_of(row: PriceFields) -> tuple[object, ...]:
    return tuple(getattr(row, name) for name in FIGURES)


def filled(row: Row, found: PriceEntry) -> Row:
    row.provider, row.model = found.provider, found.model
    for name, cost in zip(FIGURES, _costs(found), strict=True):
        setattr(row, name, cost)
    return row


def _costs(found: PriceEntry) -> tuple[object, ...]:
    return (found.input, found.output, found.cache_read, found.cache_write, found.terms)


def _catalog_prices() -> Mapping[Key, CatalogPrice]:
    prices: dict[Key, CatalogPrice] = {}
    for source in reversed(READERS):
        prices |= {(row.provider, row.model): row for row in CatalogPrice.objects.filter(source=source)}
    sandbox = filled(CatalogPrice(source=SANDBOX), SANDBOX_PRICE)
    return prices | {(sandbox.provider, sandbox.model): sandbox}


def _differs(row: ModelPrice, price: CatalogPrice) -> bool:
    return row.source != price.source or costs_of(row) != costs_of(price)


def _set(row: ModelPrice, price: CatalogPrice, now: datetime) -> ModelPrice:
    row.provider, row.model, row.source, row.updated_at = price.provider, price.model, price.source, now
    for name in FIGURES:
        setattr(row, name, getattr(price, name))
    return row


def _store(
    added: list[ModelPrice], changed: list[ModelPrice], removed: list[ModelPrice], changed_by: str, now: datetime
) -> None:
    if not (added or changed or removed):
        return
    ModelPrice.objects.bulk_create(added, batch_size=_BATCH)
    ModelPrice.objects.bulk_update(changed, [*FIGURES, "source", "updated_at"], batch_size=_BATCH)
    gone = [row.pk for row in removed]
    for start in range(0, len(gone), _BATCH):
        # The raw deletion sends no signal for each row, since one announcement of all changes follows.
        ModelPrice.objects.filter(pk__in=gone[start : start + _BATCH])._raw_delete(ModelPrice.objects.db)
    close_periods([*changed, *removed], now)
    open_periods([*added, *changed], changed_by, now)
    # Bulk writes send no signals of their own, so one signal announces all changes.
    transaction.on_commit(lambda: prices_changed.send(sender=ModelPrice))
