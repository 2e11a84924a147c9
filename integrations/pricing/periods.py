from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Q

from integrations.pricing.models import ModelPrice, PricePeriod

# The first tuple has the columns of the base rates, the second one all columns of a price.
COSTS = ("input_cost_per_1m", "output_cost_per_1m", "cache_read_cost_per_1m", "cache_write_cost_per_1m")
FIGURES = (*COSTS, "terms")
_BATCH = 500


def close_periods(rows: Sequence[ModelPrice], now: datetime) -> None:
    if not rows:
        return
    keys = {(row.provider, row.model) for row in rows}
    unclosed = PricePeriod.objects.filter(Q(project_id=rows[0].project_id), valid_until=None)
    if len(keys) == 1:
        unclosed = unclosed.filter(provider=rows[0].provider, model=rows[0].model)
    found = [pk for pk, provider, model in unclosed.values_list("pk", "provider", "model") if (provider, model) in keys]
    for start in range(0, len(found), _BATCH):
        PricePeriod.objects.filter(pk__in=found[start : start + _BATCH]).update(valid_until=now)


def open_periods(rows: Sequence[ModelPrice], changed_by: str, now: datetime) -> None:
    PricePeriod.objects.bulk_create(
        [
            PricePeriod(
                project_id=row.project_id,
                provider=row.provider,
                model=row.model,
                source=row.source,
                valid_from=now,
                changed_by=changed_by,
                **{name: getattr(row, name) for name in FIGURES},
            )
            for row in rows
        ],
        batch_size=_BATCH,
    )
