from __future__ import annotations

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from core.api.authentication import ProjectAccess, require_scope
from core.errors import PermissionDeniedError
from core.rights.asking import right_of_operation
from core.roles import Right, least_role


class IsProjectMember(BasePermission):
    def has_permission(self, request: Request, view: Any) -> bool:
        access = request.auth
        if not isinstance(access, ProjectAccess):
            return False
        operation = operation_of(request, view)
        if not access.rights:
            # Scopes below `manage` bring no right of a role, and open operations by name.
            require_scope(access.scopes, operation or "")
            return True
        if operation is not None and right_of_operation(operation) not in access.rights:
            raise PermissionDeniedError(_refusal(right_of_operation(operation)), code="permission_denied")
        return True


def operation_of(request: Request, view: Any) -> str | None:
    """Returns None for OPTIONS and for methods the path lacks.

    An undecorated handler has an id that is in no table.
    """
    whole = getattr(view, "operation_id", None)
    handler = getattr(view, (request.method or "").lower(), None)
    if whole is not None or handler is None or request.method == "OPTIONS":
        return whole
    named: str = getattr(handler, "operation_id", "")
    return named


def _refusal(right: Right) -> str:
    role = least_role(right)
    return (
        "This is for API keys."
        if role is None
        else f"This needs the role {role.label!r} in the project, or a higher one."
    )
