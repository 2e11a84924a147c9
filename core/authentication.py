"""Who calls the management API: a key with scope `manage`, or a signed-in member of staff."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.request import Request
from typing_extensions import override

from core.errors import AuthenticationError
from core.keys import SCOPES, KeyRecord, find_key, hash_key, project_exists
from core.last_use import flush_last_uses_when_due, note_use
from core.tenancy import requested_project


@dataclass(frozen=True, slots=True)
class ProjectAccess:
    """`request.auth`: the project the call may touch, what it may do there, and who is behind it.

    `actor` is `key:<id>` or `user:<username>`, for rows that say who did something.
    """

    project_id: UUID
    scopes: frozenset[str]
    actor: str


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer svc_…` together with `X-Project-Id`, which has to name the key's own project."""

    @override
    def authenticate(self, request: Request) -> tuple[AnonymousUser, ProjectAccess] | None:
        header = request.headers.get("Authorization", "").strip()
        if not header:
            return None
        record = usable_key(header)
        if requested_project(request) != record.project_id:
            raise AuthenticationError("This API key belongs to another project.", code="invalid_project")
        note_use(record.id, timezone.now())
        flush_last_uses_when_due()
        return AnonymousUser(), ProjectAccess(record.project_id, record.scopes, f"key:{record.id}")

    @override
    def authenticate_header(self, request: Request) -> str:
        # Without a challenge DRF would answer 403 where nobody authenticated.
        return "Bearer"


class StaffSessionAuthentication(SessionAuthentication):
    """The session cookie of the admin; unsafe methods need the CSRF token."""

    @override
    def authenticate(self, request: Request) -> tuple[AbstractBaseUser, ProjectAccess] | None:
        found = super().authenticate(request)
        if found is None or not found[0].is_staff:
            return None
        project_id = requested_project(request)
        if not project_exists(project_id):
            raise AuthenticationError("The project does not exist.", code="invalid_project")
        return found[0], ProjectAccess(project_id, frozenset(SCOPES), f"user:{found[0].get_username()}")


def usable_key(header: str) -> KeyRecord:
    """The key in an `Authorization` header. Unknown, revoked and expired read the same, so that nobody can probe."""
    scheme, _, key = header.partition(" ")
    key = key.strip()
    if scheme.lower() != "bearer" or not key:
        raise AuthenticationError("Authorization must be 'Bearer <API key>'.", code="missing_api_key")
    record = find_key(hash_key(key))
    if record is None or record.expired(timezone.now()):
        raise AuthenticationError("Invalid API key.", code="invalid_api_key")
    return record
