"""Reads the audit log, for the API and its page alike."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from core.models import AuditEntry


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """An empty text or None is no filter; the range includes both its ends. `actor` is a name of a person, a key or a
    command, `object_id` an id or a label."""

    actor: str = ""
    operation: str = ""
    via: str = ""
    object_kind: str = ""
    object_id: str = ""
    start: datetime | None = None
    end: datetime | None = None


def audit_entries(project_id: UUID, given: AuditFilter, *, of_installation: bool = False) -> QuerySet[AuditEntry]:
    """Returns the project's entries that match, the latest first; `of_installation` adds those of no project."""
    rows = AuditEntry.objects.for_project(project_id)
    if of_installation:
        rows = AuditEntry.objects.filter(Q(project_id=project_id) | Q(project_id=None))
    if given.actor:
        rows = rows.filter(Q(actor_name=given.actor) | Q(actor_id=given.actor))
    if given.object_id:
        rows = rows.filter(Q(object_id=given.object_id) | Q(object_label=given.object_id))
    for name in ("operation", "via", "object_kind"):
        if getattr(given, name):
            rows = rows.filter(**{name: getattr(given, name)})
    if given.start:
        rows = rows.filter(created_at__gte=given.start)
    if given.end:
        rows = rows.filter(created_at__lte=given.end)
    return rows
