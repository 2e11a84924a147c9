from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from core.models import AuditEntry

# A value fits if one of the lookups finds it.
_LOOKUPS: Mapping[str, tuple[str, ...]] = {
    "actor": ("actor_name", "actor_id"),
    "operation": ("operation",),
    "via": ("via",),
    "object_kind": ("object_kind",),
    "object_id": ("object_id", "object_label"),
    "start_date": ("created_at__gte",),
    "end_date": ("created_at__lte",),
}


def audit_entries(project_id: UUID, given: Mapping[str, Any], *, of_installation: bool = False) -> QuerySet[AuditEntry]:
    """`given` are values of AuditParameters; an empty one does not filter."""
    rows = AuditEntry.objects.for_project(project_id)
    if of_installation:
        rows = AuditEntry.objects.filter(Q(project_id=project_id) | Q(project_id=None))
    for name, value in given.items():
        if value:
            rows = rows.filter(Q(**dict.fromkeys(_LOOKUPS[name], value), _connector=Q.OR))
    return rows
