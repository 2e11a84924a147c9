from __future__ import annotations

from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Manager, Model, QuerySet

from core.errors import ApplicationError
from core.models import Project

Row = TypeVar("Row", bound=Model)
Failure = ApplicationError | type[ApplicationError]


def get_or_raise(rows: QuerySet[Row] | Manager[Row], error: Failure, **lookup: Any) -> Row:
    """Returns the first of the rows that match. Raises `error` if none does."""
    row = rows.filter(**lookup).first()
    if row is None:
        raise error
    return row


def require_room(project_id: UUID, rows: QuerySet[Any], maximum: int, error: Failure) -> None:
    """Raises `error` if there are `maximum` rows already.

    Call it within a transaction: it locks the project until the end, because two concurrent calls would each find room.
    """
    lock_project(project_id)
    if rows.count() >= maximum:
        raise error


def lock_project(project_id: UUID) -> None:
    """Locks the project against other callers of this function until the transaction ends. Rows that refer to the
    project can still be inserted."""
    Project.objects.select_for_update(no_key=True).get(pk=project_id)
