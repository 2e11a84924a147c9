"""Which authenticated callers the management API serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from typing_extensions import override

from core.authentication import ProjectAccess
from core.errors import PermissionDeniedError
from core.keys import MANAGE

if TYPE_CHECKING:
    from rest_framework.views import APIView  # which loads this module by DRF's setting while it is being imported


class IsProjectMember(BasePermission):
    """Someone authenticated for a project, with scope `manage`."""

    @override
    def has_permission(self, request: Request, view: APIView) -> bool:
        access = request.auth
        if not isinstance(access, ProjectAccess):
            return False
        if MANAGE not in access.scopes:
            raise PermissionDeniedError("This API key lacks the scope 'manage'.", code="scope_missing")
        return True
