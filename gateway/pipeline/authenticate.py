from __future__ import annotations

import time
from datetime import UTC, datetime

from core.errors import AuthenticationError, PermissionDeniedError
from core.keys.last_use import note_use
from core.keys.services import hash_key
from gateway.protocol.headers import RequestHeaders
from gateway.snapshot.store import Found, SnapshotStore

_GATEWAY = frozenset({"gateway"})
_MAX_KEY_BYTES = 512


def _credential(headers: RequestHeaders) -> bytes:
    """Anthropic's SDKs send `x-api-key` and Google's `x-goog-api-key` in place of `Authorization: Bearer`."""
    credential = headers.authorization
    if credential[:7].lower() == b"bearer " and (key := credential[7 : 7 + _MAX_KEY_BYTES].strip()):
        return key
    if not credential and (key := headers.api_key.encode()[:_MAX_KEY_BYTES].strip()):
        return key
    raise AuthenticationError(
        "An API key is required: send it in the header Authorization: Bearer <API_KEY>, x-api-key or x-goog-api-key",
        code="missing_api_key",
    )


async def authenticate(snapshots: SnapshotStore, headers: RequestHeaders, scopes: frozenset[str] = _GATEWAY) -> Found:
    """Returns the key's project and the key, which must have one of `scopes`.

    Raises AuthenticationError (401), PermissionDeniedError (403), and ServiceUnavailableError if the key cannot be
    looked up.
    """
    key_hash = key_hash_of(headers)
    found = snapshots.find(key_hash) or await snapshots.resolve(key_hash)
    if found is None:
        raise AuthenticationError("The API key is not valid")
    return _checked(snapshots, found, headers, scopes)


def key_hash_of(headers: RequestHeaders) -> str:
    return hash_key(_credential(headers))


def authenticate_known(snapshots: SnapshotStore, headers: RequestHeaders, key_hash: str) -> Found | None:
    found = snapshots.find(key_hash)
    return None if found is None else _checked(snapshots, found, headers, _GATEWAY)


def _checked(snapshots: SnapshotStore, found: Found, headers: RequestHeaders, scopes: frozenset[str]) -> Found:
    snapshot, key = found
    if key.expires_at is not None and key.expires_at.timestamp() <= time.time():
        raise AuthenticationError("The API key is not valid")
    if headers.project_id and headers.project_id.strip().lower() != snapshot.id_text:
        raise AuthenticationError("X-Project-Id is not the project of this API key", code="invalid_project")
    if key.scopes.isdisjoint(scopes):
        if scopes is _GATEWAY:
            raise PermissionDeniedError("This API key has no scope for the gateway")
        named = " or ".join(repr(scope) for scope in sorted(scopes))
        raise PermissionDeniedError(f"This API key lacks the scope {named}.", code="scope_missing")
    snapshots.note_use(snapshot.project_id)
    note_use(key.id, datetime.now(UTC))
    return found
