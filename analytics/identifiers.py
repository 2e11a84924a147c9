"""Ids of requests and sessions as clients name them. Those are text; the gateway's own request ids are UUIDs."""

from __future__ import annotations

import hashlib
from uuid import UUID

_UUID_CHARACTERS = 36
_GATEWAY_VERSION = 7


def canonical_request_id(request_id: str) -> str:
    """A UUID in the letter case in which the gateway writes it; any other text as it is."""
    return request_id if _uuid(request_id) is None else request_id.lower()


def gateway_id(request_id: str) -> UUID | None:
    """None for what cannot be one of the gateway's ids: those are UUIDv7."""
    found = _uuid(request_id)
    return found if found is not None and found.version == _GATEWAY_VERSION else None


def session_hash(session_id: str) -> str:
    """SHA-256, hexadecimal."""
    return hashlib.sha256(session_id.encode()).hexdigest()


def _uuid(text: str) -> UUID | None:
    # UUID() also takes braces, "urn:uuid:" and any placing of hyphens.
    if len(text) != _UUID_CHARACTERS:
        return None
    try:
        found = UUID(text)
    except ValueError:
        return None
    return found if str(found) == text.lower() else None
