from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from hashlib import sha256
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from core.audit.recording import CHANGED, Change
from core.audit.subjects import PRICE_LIST
from core.models import Project
from integrations.errors import PriceNotFoundError, TooManyPricesError
from integrations.pricing import shipped
from integrations.pricing.entries import PriceEntry
from integrations.pricing.models import CatalogState, ModelPrice, PriceSource, PriceSyncLog
from integrations.pricing.periods import COSTS, FIGURES, close_periods, open_periods
from integrations.pricing.reading import READER, Key, Reading
from integrations.pricing.selectors import price_mark
from integrations.pricing.table import TableChange, catalog_price, costs_of, lock_table, rebuild, replace_catalog

# The number of a project's own prices is bounded because every worker holds all prices of each project that it serves.
MAX_OVERRIDES = 1000
Costs = Mapping[str, Decimal | None]


def load_shipped_prices_once() -> None:
    """Skips the load if the same list was loaded before and no price for all projects has changed since."""
    known = set(CatalogState.objects.values_list("shipped", flat=True))
    if known != {_shipped_mark()}:
        load_shipped_prices()
        CatalogState.objects.update(shipped=_shipped_mark())


def _shipped_mark() -> str:
    made_of = repr((READER, shipped.SANDBOX_PRICE, price_mark()))
    return sha256(shipped.PRICE_LIST.read_bytes() + made_of.encode()).hexdigest()


def load_shipped_prices() -> TableChange:
    """Skips catalogs that have been synced, whose prices are newer. Idempotent; `manual` prices stay."""
    listed: dict[str, dict[Key, PriceEntry]] = {}
    for source, entry in shipped.entries():
        listed.setdefault(source, {})[entry.provider, entry.model] = entry
    with transaction.atomic():
        states = lock_table()
        for source, entries in listed.items():
            if source in states and states[source].read_at is None:
                replace_catalog(source, Reading(entries, {}))
        return rebuild("shipped")


def set_price(*, project_id: UUID | None, provider: str, model: str, costs: Costs, actor: str) -> ModelPrice:
    """Sets a manual price, for all projects if `project_id` is None. `costs` are keyed by the names in COSTS; a missing
    one is unknown. A manual price has no terms: the catalogs' tiers and fees belong to their own prices. Raises
    TooManyPricesError."""
    with transaction.atomic():
        _lock(project_id)
        row = _row(project_id, provider, model)
        before = None if row is None else (row.source, costs_of(row))
        if row is None and project_id is not None:
            _check_room(project_id)
        row = row or ModelPrice(project_id=project_id, provider=provider, model=model)
        row.source = PriceSource.MANUAL
        for name in COSTS:
            setattr(row, name, costs.get(name))
        row.terms = {}
        if before == (row.source, costs_of(row)):
            return row
        return _save(row, actor)


def remove_price(*, project_id: UUID | None, provider: str, model: str, actor: str) -> None:
    """Removes a manual price, so that the catalogs' price or the price for all projects applies again. Raises
    PriceNotFoundError."""
    with transaction.atomic():
        _lock(project_id)
        row = _row(project_id, provider, model)
        if row is None or row.source != PriceSource.MANUAL:
            raise PriceNotFoundError(f"No price was set by hand for {provider}/{model}.")
        listed = catalog_price(provider, model) if project_id is None else None
        if listed is None:
            close_periods([row], timezone.now())
            row.delete()
            return
        row.source = listed.source
        for name in FIGURES:
            setattr(row, name, getattr(listed, name))
        _save(row, actor)


def _lock(project_id: UUID | None) -> None:
    if project_id is None:
        lock_table()
        return
    # The lock allows one change of a project's prices at a time; without it two requests that set the same new price
    # would make two rows.
    Project.objects.select_for_update(no_key=True).get(pk=project_id)


def _check_room(project_id: UUID) -> None:
    if ModelPrice.objects.filter(project_id=project_id).count() >= MAX_OVERRIDES:
        raise TooManyPricesError(f"A project can set at most {MAX_OVERRIDES} prices; delete one that it does not need.")


def _row(project_id: UUID | None, provider: str, model: str) -> ModelPrice | None:
    return ModelPrice.objects.filter(Q(project_id=project_id), provider=provider, model=model).first()


def _save(row: ModelPrice, actor: str) -> ModelPrice:
    now = timezone.now()
    row.save()
    close_periods([row], now)
    open_periods([row], actor, now)
    return row


def price_list_changes(made: TableChange | PriceSyncLog) -> list[Change]:
    counts = {name: getattr(made, name) for name in ("added", "updated", "removed")}
    after = {name: count for name, count in counts.items() if count}
    if not after:
        return []
    number = str(made.pk) if isinstance(made, PriceSyncLog) else "shipped"
    return [Change(PRICE_LIST, number, "prices of all projects", None, CHANGED, after=after)]
