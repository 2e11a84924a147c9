"""Tells apps above which items are no longer in any version."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from django.dispatch import Signal


class Reason(StrEnum):
    """Why items are gone: their request, session or item was erased, or the project's retention was over."""

    ERASED = "erased"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class GoneItems:
    project_id: UUID
    dataset_id: UUID
    item_ids: frozenset[UUID]
    reason: Reason


items_gone = Signal()
"""Sent with `gone`, a `GoneItems`, within the transaction that deletes the items, so that a receiver's changes are
kept if and only if theirs are. What a receiver raises ends the deletion, which is tried again."""
