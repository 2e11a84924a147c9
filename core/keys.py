"""API keys: how they are made, stored and looked up."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from core.errors import ValidationError
from core.models import ApiKey, Project

KEY_PREFIX = "svc_"
GATEWAY = "gateway"
MANAGE = "manage"
# The scope for monitoring: it reads metrics and the state of the service, and nothing else. `manage` includes it.
METRICS = "metrics:read"
SCOPES = (GATEWAY, MANAGE, METRICS)
# The scopes of a key for which none were chosen.
USUAL_SCOPES = (GATEWAY, MANAGE)

# The visible prefix is `svc_` and four characters, 24 of the key's 256 bits.
VISIBLE_CHARACTERS = len(KEY_PREFIX) + 4


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A key as the gateway keeps it in memory. It is not revoked; it may have expired."""

    id: int
    project_id: UUID
    key_hash: str
    scopes: frozenset[str]
    expires_at: datetime | None

    def expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


def hash_key(key: str | bytes) -> str:
    """Returns the SHA-256 of a key, hexadecimal, for any text or bytes that a client sends."""
    raw = key if isinstance(key, bytes) else key.encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()


def issue_key(
    project: Project, *, name: str, scopes: Iterable[str], expires_at: datetime | None = None
) -> tuple[ApiKey, str]:
    """Stores a new key of `project` and returns it with its plain text, which cannot be shown again.

    Raises ValidationError for an unknown scope, no scope at all, and an expiry that has passed.
    """
    checked = _checked_scopes(scopes)
    if expires_at is not None and expires_at <= timezone.now():
        raise _invalid("expires_at", "Must be in the future.")
    key = KEY_PREFIX + secrets.token_urlsafe(32)
    row = ApiKey.objects.create(
        project=project,
        name=name,
        prefix=key[:VISIBLE_CHARACTERS],
        key_hash=hash_key(key),
        scopes=checked,
        expires_at=expires_at,
    )
    return row, key


def revoke_key(key: ApiKey) -> None:
    """Revokes a key. Revoking twice keeps the first time."""
    if key.revoked_at is None:
        key.revoked_at = timezone.now()
        # The row is saved, not updated by a query: the gateway listens to the signal and forgets the key.
        key.save(update_fields=["revoked_at"])


def find_key(key_hash: str) -> KeyRecord | None:
    """Returns the key with this hash, or None when it is unknown or revoked. One query, equally fast for both."""
    row = ApiKey.objects.filter(key_hash=key_hash, revoked_at=None).first()
    return None if row is None else key_record(row)


def project_keys(project_id: UUID) -> list[KeyRecord]:
    """Returns every key of the project that is not revoked, expired ones too. Empty for an unknown project."""
    return [key_record(row) for row in ApiKey.objects.for_project(project_id).filter(revoked_at=None)]


def key_record(row: ApiKey) -> KeyRecord:
    return KeyRecord(
        id=row.pk,
        project_id=row.project_id,
        key_hash=row.key_hash,
        scopes=frozenset(row.scopes),
        expires_at=row.expires_at,
    )


def project_exists(project_id: UUID) -> bool:
    return Project.objects.filter(pk=project_id).exists()


def _checked_scopes(scopes: Iterable[str]) -> list[str]:
    chosen = set(scopes)
    if not chosen:
        raise _invalid("scopes", "At least one scope is required.")
    unknown = sorted(chosen.difference(SCOPES))
    if unknown:
        raise _invalid("scopes", f"Unknown scope {unknown[0]!r}; the scopes are {', '.join(SCOPES)}.")
    return sorted(chosen)


def _invalid(field: str, problem: str) -> ValidationError:
    return ValidationError(f"{field}: {problem}", details={field: [problem]})
