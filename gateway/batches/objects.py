from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from core.errors import NotFoundError
from gateway.models import StoredObject
from gateway.tables.stored_object import ID_CHARACTERS, ObjectKind

MAX_PAGE = 100
_NAMES = {ObjectKind.FILE: "file", ObjectKind.BATCH: "batch", ObjectKind.MESSAGE_BATCH: "message batch"}


def find(project_id: UUID, kind: ObjectKind, vendor_id: str) -> StoredObject:
    """Raises NotFoundError (404), also for another project's object."""
    row = None
    if len(vendor_id) <= ID_CHARACTERS:
        row = StoredObject.objects.for_project(project_id).filter(kind=kind, vendor_id=vendor_id).first()
    if row is None:
        raise NotFoundError(f"This project has no {_NAMES[kind]} {vendor_id[:ID_CHARACTERS]!r}")
    return row


def save(row: StoredObject) -> None:
    found = StoredObject.objects.for_project(row.project_id).filter(kind=row.kind, vendor_id=row.vendor_id)
    with transaction.atomic():
        if not found.update(state=row.state, value=row.value):
            row.save(force_insert=True)


def save_seen(row: StoredObject, value: Mapping[str, Any], state: str, results: Sequence[str] = ()) -> None:
    row.value, row.state = dict(value), state
    row.save(update_fields=["value", "state"])
    for file_id in results:
        _copy_for(row, file_id)


def _copy_for(batch: StoredObject, file_id: str) -> None:
    StoredObject.objects.get_or_create(
        project_id=batch.project_id,
        kind=ObjectKind.FILE,
        vendor_id=file_id,
        defaults={
            "integration_id": batch.integration_id,
            "provider": batch.provider,
            "api_key_id": batch.api_key_id,
            "team_id": batch.team_id,
            "user_id": batch.user_id,
            "session_id": batch.session_id,
            "purpose": "batch_output",
            "endpoint": batch.endpoint,
            "model_names": batch.model_names,
            "batch_id": batch.vendor_id,
        },
    )


def page(
    project_id: UUID, kind: ObjectKind, *, after: str, limit: int, before: str = "", purpose: str = ""
) -> tuple[list[StoredObject], bool]:
    """Returns the project's objects, newest first, and whether more follow.

    The page follows the id `after` or precedes `before`. Raises NotFoundError (404) if the project has no such object.
    """
    rows = StoredObject.objects.for_project(project_id).filter(kind=kind).order_by("-id")
    if purpose:
        rows = rows.filter(purpose=purpose)
    if after:
        rows = rows.filter(id__lt=find(project_id, kind, after).pk)
    if before:
        rows = rows.filter(id__gt=find(project_id, kind, before).pk).order_by("id")
    found = list(rows[: limit + 1])
    shown = found[:limit]
    return (shown[::-1] if before else shown), len(found) > limit


def forget(row: StoredObject) -> None:
    row.delete()


def price(row: StoredObject, records: str, cost: Decimal | None) -> bool:
    unpriced = StoredObject.objects.filter(pk=row.pk, priced_at=None)
    return bool(unpriced.update(priced_at=timezone.now(), priced_as=records, cost_usd=cost))
