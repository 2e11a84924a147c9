from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from core.caller_limits import CallerLimits
from core.errors import ConflictError, ValidationError
from core.keys.patterns import permits
from core.models import ApiKey, Limited, Project, Team
from core.rights.scopes import SCOPES

KEY_PREFIX = "svc_"
# The visible prefix is `svc_` and four characters, 24 of the key's 256 bits.
VISIBLE_CHARACTERS = len(KEY_PREFIX) + 4
# Of a secret that was made elsewhere.
MIN_SECRET_CHARACTERS = 20

# The columns whose change is a change of the key's limits.
LIMIT_FIELDS = (
    "monthly_budget_usd",
    "total_budget_usd",
    "rate_limit_rpm",
    "rate_limit_tpm",
    "max_concurrent_requests",
)
# The columns that may change while the holder of a key goes on using it.
CHANGEABLE_FIELDS = ("name", "expires_at", *LIMIT_FIELDS, "allowed_models", "allowed_providers", "metadata", "team_id")
# Prefixes the names of a key's metadata among the attributes of a request.
METADATA_PREFIX = "metadata."
_NO_TEAMS: Mapping[int, CallerLimits] = {}


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A key in the gateway's memory. It is not revoked, but may have expired."""

    id: int
    project_id: UUID
    key_hash: str
    scopes: frozenset[str]
    expires_at: datetime | None
    # None where the key has no limits.
    limits: CallerLimits | None = None
    # 0 where the key belongs to no team; the limits are None where the team has none.
    team_id: int = 0
    team_limits: CallerLimits | None = None
    allowed_models: tuple[str, ...] = ()
    allowed_providers: tuple[str, ...] = ()
    # The key's metadata as attributes of its requests.
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_restricted(self) -> bool:
        return bool(self.allowed_models or self.allowed_providers)

    def permits(self, provider: str, model: str, deployment: str = "") -> bool:
        return permits(self.allowed_models, self.allowed_providers, provider, model, deployment)

    def expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


def hash_key(key: str | bytes) -> str:
    raw = key if isinstance(key, bytes) else key.encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()


def issue_key(
    project: Project,
    *,
    name: str,
    scopes: Iterable[str],
    expires_at: datetime | None = None,
    secret: str | None = None,
    **limits: Any,
) -> tuple[ApiKey, str]:
    """Stores a new key and returns it with its plain text, which cannot be shown again.

    `limits` are columns of `CHANGEABLE_FIELDS`; `secret` is the plain text of a key that clients already use. Raises
    ValidationError for unknown or missing scopes, a past expiry, an unknown team, and a guessable or taken secret.
    """
    checked = _checked_scopes(scopes)
    _check_expiry(expires_at)
    key = _new_secret() if secret is None else _checked_secret(secret)
    with transaction.atomic():
        _check_team(project.pk, limits.get("team_id"))
        row = ApiKey.objects.create(
            project=project,
            name=name,
            prefix=key[:VISIBLE_CHARACTERS],
            key_hash=hash_key(key),
            scopes=checked,
            expires_at=expires_at,
            limits_changed_at=timezone.now() if any(limits.get(name) is not None for name in LIMIT_FIELDS) else None,
            **limits,
        )
    return row, key


def change_key(key: ApiKey, values: Mapping[str, Any]) -> None:
    _check_expiry(values.get("expires_at"))
    _check_team(key.project_id, values.get("team_id"))
    is_limited_anew = any(name in values and values[name] != getattr(key, name) for name in LIMIT_FIELDS)
    for name, value in values.items():
        setattr(key, name, value)
    if is_limited_anew:
        key.limits_changed_at = timezone.now()
    key.save(update_fields=[*values, "limits_changed_at"])


def rotate_key(key: ApiKey, *, grace_seconds: int) -> str:
    """Returns the key's new secret. The present one keeps working for `grace_seconds`; one already in its grace ends.
    Raises ConflictError for a revoked or expired key."""
    now = timezone.now()
    if key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= now):
        raise ConflictError("The key is revoked or has expired.", code="key_ended")
    secret = _new_secret()
    key.previous_key_hash = key.key_hash if grace_seconds else None
    key.previous_expires_at = now + timedelta(seconds=grace_seconds) if grace_seconds else None
    key.key_hash, key.prefix = hash_key(secret), secret[:VISIBLE_CHARACTERS]
    key.save(update_fields=["key_hash", "prefix", "previous_key_hash", "previous_expires_at"])
    return secret


def replace_secret(key: ApiKey, secret: str) -> None:
    key.key_hash, key.prefix = hash_key(_checked_secret(secret)), secret[:VISIBLE_CHARACTERS]
    key.previous_key_hash = key.previous_expires_at = None
    key.save(update_fields=["key_hash", "prefix", "previous_key_hash", "previous_expires_at"])


def revoke_key(key: ApiKey) -> None:
    """Revoking twice keeps the first time."""
    if key.revoked_at is None:
        key.revoked_at = timezone.now()
        # The row is saved, not updated by a query: the gateway listens to the signal and forgets the key.
        key.save(update_fields=["revoked_at"])


def find_key(key_hash: str) -> KeyRecord | None:
    """Returns None for an unknown or revoked key, and for a secret that a rotation has ended. One query, equally fast
    for all."""
    named = Q(key_hash=key_hash) | Q(previous_key_hash=key_hash)
    row = ApiKey.objects.filter(named, revoked_at=None).first()
    return None if row is None else next((record for record in _records(row) if record.key_hash == key_hash), None)


def team_limits(project_id: UUID) -> Mapping[int, CallerLimits]:
    rows = Team.objects.for_project(project_id)
    return {row.pk: limits for row in rows if (limits := limits_of(row)) is not None}


def project_keys(project_id: UUID, teams: Mapping[int, CallerLimits] = _NO_TEAMS) -> list[KeyRecord]:
    """Returns the project's unrevoked keys, including expired ones; empty for an unknown project.

    A rotated key appears twice, once per secret, until its grace is over. `teams` are those of `team_limits`; keys of a
    team share its object.
    """
    rows = ApiKey.objects.for_project(project_id).filter(revoked_at=None)
    return [record for row in rows for record in _records(row, teams)]


def key_record(row: ApiKey, teams: Mapping[int, CallerLimits] = _NO_TEAMS) -> KeyRecord:
    return KeyRecord(
        id=row.pk,
        project_id=row.project_id,
        key_hash=row.key_hash,
        scopes=frozenset(row.scopes),
        expires_at=row.expires_at,
        limits=limits_of(row),
        team_id=row.team_id or 0,
        team_limits=teams.get(row.team_id or 0),
        allowed_models=tuple(row.allowed_models),
        allowed_providers=tuple(row.allowed_providers),
        attributes={f"{METADATA_PREFIX}{name}": value for name, value in row.metadata.items()},
    )


def _records(row: ApiKey, teams: Mapping[int, CallerLimits] = _NO_TEAMS) -> list[KeyRecord]:
    record = key_record(row, teams)
    ends = row.previous_expires_at
    if row.previous_key_hash is None or ends is None or ends <= timezone.now():
        return [record]
    earlier = ends if row.expires_at is None else min(ends, row.expires_at)
    return [record, replace(record, key_hash=row.previous_key_hash, expires_at=earlier)]


def limits_of(row: Limited) -> CallerLimits | None:
    changed_at = row.limits_changed_at
    limits = CallerLimits(
        requests_per_minute=row.rate_limit_rpm,
        tokens_per_minute=row.rate_limit_tpm,
        concurrent_requests=row.max_concurrent_requests,
        monthly_budget_usd=row.monthly_budget_usd,
        total_budget_usd=row.total_budget_usd,
        set_at_us=int(changed_at.timestamp() * 1_000_000) if changed_at is not None else 0,
    )
    return limits if limits.is_set else None


def _new_secret() -> str:
    return KEY_PREFIX + secrets.token_urlsafe(32)


def _checked_secret(secret: str) -> str:
    """A secret made elsewhere must be long, because its hash is fast."""
    if len(secret) < MIN_SECRET_CHARACTERS or any(not "!" <= character <= "~" for character in secret):
        raise ValidationError.of_field(
            "secret", f"Must have at least {MIN_SECRET_CHARACTERS} visible ASCII characters."
        )
    named = hash_key(secret)
    if ApiKey.objects.filter(Q(key_hash=named) | Q(previous_key_hash=named)).exists():
        raise ValidationError.of_field("secret", "Another key has this secret.")
    return secret


def _check_expiry(expires_at: datetime | None) -> None:
    if expires_at is not None and expires_at <= timezone.now():
        raise ValidationError.of_field("expires_at", "Must be in the future.")


def _check_team(project_id: UUID, team_id: int | None) -> None:
    """Raises ValidationError for a team that the project does not have. The team stays until the transaction ends."""
    if team_id is not None and not Team.objects.for_project(project_id).select_for_update().filter(pk=team_id).exists():
        raise ValidationError.of_field("team_id", "This project has no such team.")


def project_exists(project_id: UUID) -> bool:
    return Project.objects.filter(pk=project_id).exists()


def _checked_scopes(scopes: Iterable[str]) -> list[str]:
    chosen = set(scopes)
    if not chosen:
        raise ValidationError.of_field("scopes", "At least one scope is required.")
    unknown = sorted(chosen.difference(SCOPES))
    if unknown:
        raise ValidationError.of_field("scopes", f"Unknown scope {unknown[0]!r}; the scopes are {', '.join(SCOPES)}.")
    return sorted(chosen)
