from __future__ import annotations

from uuid import UUID

from analytics.deletion.signals import Erased
from analytics.identifiers import id_hash
from gateway.tables.end_user import EndUserLimit


def user_is_erased(*, erased: Erased, **_: object) -> None:
    """Removes the limits that name the user."""
    for row in _limits_of(erased.project_id, erased.user_hash):
        row.delete()


def user_is_kept(*, erased: Erased, **_: object) -> bool:
    return bool(_limits_of(erased.project_id, erased.user_hash))


def _limits_of(project_id: UUID, user_hash: str) -> list[EndUserLimit]:
    if not user_hash:
        return []
    return [row for row in EndUserLimit.objects.for_project(project_id) if id_hash(row.user_id) == user_hash]
