"""Normalizes the ids of requests and sessions. Clients may send any text; the gateway's own request ids are UUIDs."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from uuid import UUID

_UUID_CHARACTERS = 36
_GATEWAY_VERSION = 7
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The bound is in the year 2109; an id that a client made up may contain the year 10889.
_LATEST_MS = 2**42


def canonical_request_id(request_id: str) -> str:
    """Returns a UUID in lower case, as the gateway writes it, and any other id unchanged."""
    return request_id if _uuid(request_id) is None else request_id.lower()


def gateway_id(request_id: str) -> UUID | None:
    found = _uuid(request_id)
    return found if found is not None and found.version == _GATEWAY_VERSION else None


def arrival_of(request_id: UUID) -> datetime | None:
    """Returns the time in a UUIDv7, to the millisecond (RFC 9562, 5.7): a gateway request's arrival. None for
    others.
    """
    if request_id.version != _GATEWAY_VERSION:
        return None
    return _EPOCH + timedelta(milliseconds=min(request_id.int >> 80, _LATEST_MS))


def id_hash(identifier: str) -> str:
    return hashlib.sha256(identifier.encode()).hexdigest()


def _uuid(text: str) -> UUID | None:
    # The constructor of UUID also takes braces, "urn:uuid:" and hyphens in any place.
    if len(text) != _UUID_CHARACTERS:
        return None
    try:
        found = UUID(text)
    except ValueError:
        return None
    return found if str(found) == text.lower() else None
