"""Finds requests that quote what was deleted: a judge's and an experiment's, which name it in their attributes.

A deletion keeps the ids of all requests that it erased, and those that apps above add, while late records may still
arrive. Quoting requests are erased and remembered in the same way: a judge of an experiment's answer is found by the
answer's request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import F

from analytics.models import Deletion, DeletionReference
from analytics.request_log.quoting import ATTRIBUTES, SOURCES

_AT_ONCE = 10_000
_ROWS_AT_ONCE = 1_000
# The clocks of the gateway's hosts and of the store differ by less.
_CLOCKS_DIFFER_BY = timedelta(minutes=5)
_NAMED = " OR ".join(f"attributes['{name}'] IN {{references:Array(String)}}" for name in ATTRIBUTES)
QUOTING = f"""project_id = {{project:UUID}} AND source IN {SOURCES}
    AND ts >= {{since:DateTime64(6, 'UTC')}} AND recorded_at >= {{recorded:DateTime64(3, 'UTC')}}
    AND (toString(request_id) IN {{references:Array(String)}} OR {_NAMED})"""
"""The condition of requests that quote, with the parameters that `parameters_of` returns."""


def add_references(deletion: Deletion, references: Iterable[str | UUID], since: datetime) -> None:
    """Notes ids that requests made from `since` on may name. Skips ids that are noted already."""
    rows = [DeletionReference(deletion=deletion, reference=str(one), since=since) for one in references]
    DeletionReference.objects.bulk_create(rows, ignore_conflicts=True, batch_size=_ROWS_AT_ONCE)


def next_references(deletion: Deletion, started: datetime) -> Sequence[DeletionReference]:
    unsearched = deletion.references.exclude(searched_at__gte=started)
    return list(unsearched.order_by(F("searched_at").asc(nulls_first=True), "pk")[:_AT_ONCE])


def parameters_of(deletion: Deletion, references: Sequence[DeletionReference]) -> dict[str, Any]:
    """Returns the parameters of `QUOTING`. Only records newer than the last search are read."""
    since = min(one.since for one in references)
    searched = [one.searched_at for one in references if one.searched_at is not None]
    recorded = min(searched) if len(searched) == len(references) else since
    return {
        "project": deletion.project_id,
        "references": [one.reference for one in references],
        "since": since - _CLOCKS_DIFFER_BY,
        "recorded": recorded - _CLOCKS_DIFFER_BY,
    }


def note_searched(references: Sequence[DeletionReference], moment: datetime) -> None:
    ids = [one.pk for one in references]
    for start in range(0, len(ids), _ROWS_AT_ONCE):
        DeletionReference.objects.filter(pk__in=ids[start : start + _ROWS_AT_ONCE]).update(searched_at=moment)
