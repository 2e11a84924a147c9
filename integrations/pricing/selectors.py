from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet

from integrations.pricing.lookup import find_entry
from integrations.pricing.models import ModelPrice, PricePeriod, PriceSyncLog

SYNC_HISTORY = 50


def project_prices(project_id: UUID) -> QuerySet[ModelPrice]:
    own = ModelPrice.objects.filter(project_id=project_id, provider=OuterRef("provider"), model=OuterRef("model"))
    return ModelPrice.objects.filter(Q(project_id=project_id) | Q(Q(project=None), ~Exists(own))).order_by(
        "provider", "model"
    )


def applied_price(project_id: UUID, provider: str, model: str) -> ModelPrice | None:
    known = project_prices(project_id).exclude(Q(input_cost_per_1m=None) | Q(output_cost_per_1m=None))
    entry = find_entry(set(known.order_by().values_list("provider", "model")), provider, model)
    return None if entry is None else known.get(provider=entry[0], model=entry[1])


def price_mark() -> tuple[object, ...]:
    """Returns a value that differs after each change of the prices for all projects and is much faster to read.

    Every change of a price opens a period or removes a row; the time of the change would not do, since a clock may be
    set back.
    """
    shared = ModelPrice.objects.filter(project=None)
    totals = shared.order_by().aggregate(count=Count("pk"), newest=Max("pk"), updated=Max("updated_at"))
    period = PricePeriod.objects.filter(project=None).order_by("-pk").values_list("pk", flat=True).first()
    return totals["count"], totals["newest"], totals["updated"], period


def price_periods(project_id: UUID, provider: str, model: str, at: datetime | None = None) -> QuerySet[PricePeriod]:
    """Returns the model's periods, newest first. With `at`, only those that contain that time; the first has the price
    of the project's requests."""
    periods = PricePeriod.objects.filter(Q(project_id=project_id) | Q(project=None), provider=provider, model=model)
    if at is None:
        return periods.order_by("-valid_from", "-pk")
    valid = periods.filter(Q(valid_until=None) | Q(valid_until__gt=at), valid_from__lte=at)
    return valid.order_by(F("project_id").desc(nulls_last=True), "-valid_from", "-pk")


def sync_history() -> QuerySet[PriceSyncLog]:
    return PriceSyncLog.objects.order_by("-started_at", "-pk")[:SYNC_HISTORY]
