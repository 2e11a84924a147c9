from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.dispatch import Signal


@dataclass(frozen=True, slots=True)
class Erased:
    """Records to erase in a project: requests by the SHA-256 of their ids, what a session received up to `until`,
    items of data sets, and settings that name an end user."""

    project_id: UUID
    request_hashes: AbstractSet[str] = frozenset()
    session_hash: str = ""
    until: datetime | None = None
    item_ids: AbstractSet[UUID] = frozenset()
    user_hash: str = ""


@dataclass(frozen=True, slots=True)
class Quotes:
    """Where the request log quotes what is erased: `references` are ids of quoting requests, or ids that they name.

    None was made before `since`.
    """

    references: AbstractSet[str]
    since: datetime


subject_erased = Signal()
"""Sent with `erased`, an `Erased`, within a transaction, and at every look for late records, so that a receiver hears
of the same subject again and again. It deletes its texts of it, and returns `Quotes` or None. What it raises ends the
deletion, which is tried again."""

subject_sought = Signal()
"""Sent with `erased`, an `Erased`; a receiver returns whether it has texts of it."""
