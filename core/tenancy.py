from __future__ import annotations

from typing import Any, TypeVar
from uuid import UUID

from django.db import models
from django.http import HttpRequest

from core.errors import AuthenticationError, PermissionDeniedError, ValidationError

PROJECT_HEADER = "X-Project-Id"

Row = TypeVar("Row", bound=models.Model)


class ProjectManager(models.Manager[Row]):
    def for_project(self, project_id: UUID) -> models.QuerySet[Row]:
        return self.filter(project_id=project_id)


def names_project(request: HttpRequest) -> bool:
    return bool(request.headers.get(PROJECT_HEADER, "").strip())


def requested_project(request: HttpRequest) -> UUID:
    """Returns the project in the header. A header that is missing or not a UUID is 401 `invalid_project`."""
    found = request.headers.get(PROJECT_HEADER, "").strip()
    if not found:
        raise AuthenticationError(f"The header {PROJECT_HEADER} is missing.", code="invalid_project")
    try:
        return UUID(found)
    except ValueError:
        raise AuthenticationError(f"The header {PROJECT_HEADER} is not a UUID.", code="invalid_project") from None


def require_same_project(project_id: UUID, named: Any) -> None:
    """Refuses a `project_id` in query, body or path that differs from the header: 403, or 400 if it is no UUID."""
    try:
        other = UUID(str(named))
    except ValueError:
        message = "project_id: must be a UUID."
        raise ValidationError(message, details={"project_id": ["Must be a UUID."]}) from None
    if other != project_id:
        raise PermissionDeniedError(f"project_id differs from the header {PROJECT_HEADER}.", code="project_mismatch")
