from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from analytics.identifiers import id_hash
from analytics.models import Deletion, DeletionKind


def when_deleted(project_ids: Collection[UUID], request_id: UUID) -> datetime | None:
    """Returns when the deletion was requested in one of these projects; None if it never was."""
    of_this = {"kind": DeletionKind.REQUEST, "subject_hash": id_hash(str(request_id))}
    found = Deletion.objects.filter(project_id__in=project_ids, **of_this).order_by("-requested_at").first()
    return found.requested_at if found is not None else None
