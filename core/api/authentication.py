from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.http import HttpRequest
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.request import Request

from core.errors import AuthenticationError, PermissionDeniedError
from core.keys.last_use import flush_last_uses_when_due, note_use
from core.keys.services import KeyRecord, find_key, hash_key, project_exists
from core.rights.asking import actor_of, rights_in, rights_of_scopes, scopes_of_operation
from core.rights.scopes import MANAGE
from core.roles import Right
from core.tenancy import names_project, requested_project


@dataclass(frozen=True, slots=True)
class ProjectAccess:
    """The value of `request.auth`: the project, the caller's rights in it, and the caller.

    `actor` is `key:<id>` or `user:<username>`. Sessions set `user_id`, keys set `scopes`.
    """

    project_id: UUID
    rights: frozenset[Right]
    actor: str
    user_id: int | None = None
    scopes: frozenset[str] = frozenset()


class ApiKeyAuthentication(BaseAuthentication):
    needs_project: ClassVar[bool] = True

    def authenticate(self, request: Request) -> tuple[AnonymousUser, ProjectAccess] | None:
        header = request.headers.get("Authorization", "").strip()
        if not header:
            return None
        record = usable_key(header)
        if self.needs_project or names_project(request):
            require_project_of_key(request, record)
        note_use(record.id, timezone.now())
        flush_last_uses_when_due()
        rights = rights_of_scopes(record.scopes)
        return AnonymousUser(), ProjectAccess(record.project_id, rights, f"key:{record.id}", scopes=record.scopes)

    def authenticate_header(self, request: Request) -> str:
        # Without a challenge DRF would answer 403 instead of 401 to callers that sent no credentials.
        return "Bearer"


class KeyAloneAuthentication(ApiKeyAuthentication):
    needs_project = False


class StaffSessionAuthentication(SessionAuthentication):
    """Authenticates the admin's session; unsafe methods need the CSRF token. The person's role decides the rights."""

    def authenticate(self, request: Request) -> tuple[AbstractBaseUser, ProjectAccess] | None:
        found = super().authenticate(request)
        if found is None or not found[0].is_staff:
            return None
        user, project_id = found[0], requested_project(request)
        rights = rights_in(user, project_id)
        if not rights:
            # Only members learn whether a project exists.
            raise PermissionDeniedError("You are not a member of this project.", code="permission_denied")
        if user.is_superuser and not project_exists(project_id):
            raise AuthenticationError("The project does not exist.", code="invalid_project")
        return user, ProjectAccess(project_id, rights, actor_of(user), user.pk)


def require_project_of_key(request: HttpRequest, record: KeyRecord) -> None:
    if requested_project(request) != record.project_id:
        raise AuthenticationError("This API key belongs to another project.", code="invalid_project")


def rights_now(access: ProjectAccess) -> frozenset[Right]:
    """Returns the caller's current rights, for work that outlasts a request: a role may have been revoked."""
    if access.user_id is None:
        return access.rights
    user = get_user_model().objects.filter(pk=access.user_id).first()
    return frozenset() if user is None else rights_in(user, access.project_id)


def require_scope(scopes: frozenset[str], operation_id: str) -> None:
    """Raises PermissionDeniedError (`scope_missing`) unless one of the key's scopes opens the operation."""
    opening = scopes_of_operation(operation_id) or [MANAGE]
    if scopes.isdisjoint(opening):
        named = " or ".join(repr(scope) for scope in opening)
        raise PermissionDeniedError(f"This API key lacks the scope {named}.", code="scope_missing")


def usable_key(header: str) -> KeyRecord:
    """Raises the same error for unknown, revoked and expired keys."""
    scheme, _, key = header.partition(" ")
    key = key.strip()
    if scheme.lower() != "bearer" or not key:
        raise AuthenticationError("Authorization must be 'Bearer <API key>'.", code="missing_api_key")
    record = find_key(hash_key(key))
    if record is None or record.expired(timezone.now()):
        raise AuthenticationError("Invalid API key.", code="invalid_api_key")
    return record


def key_id_of(actor: str) -> int:
    """Returns 0 for an actor that is not an API key."""
    kind, _, number = actor.partition(":")
    return int(number) if kind == "key" and number.isdecimal() else 0
