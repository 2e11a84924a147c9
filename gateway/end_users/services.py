"""Makes, changes and removes the limits of end users by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from core.errors import ConflictError
from gateway.tables.end_user import MAX_END_USERS, EndUserLimit


def list_limits(project_id: UUID) -> QuerySet[EndUserLimit]:
    return EndUserLimit.objects.for_project(project_id)


def create_limit(project_id: UUID, values: Mapping[str, Any]) -> EndUserLimit:
    """Returns the limits of a user without limits so far. Raises ConflictError."""
    if list_limits(project_id).count() >= MAX_END_USERS:
        raise ConflictError(f"A project limits at most {MAX_END_USERS} end users by name.", code="too_many_users")
    try:
        with transaction.atomic():
            return EndUserLimit.objects.create(project_id=project_id, **values)
    except IntegrityError:
        raise ConflictError("The end user has limits already.", code="end_user_limit_exists") from None


def change_limit(row: EndUserLimit, values: Mapping[str, Any]) -> EndUserLimit:
    """Returns the row with these values; a limit that is not among them stays as it is."""
    for name, value in values.items():
        setattr(row, name, value)
    row.save()
    return row
