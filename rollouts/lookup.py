"""Finds rollouts by id and by name."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from core.lookup.registry import Kind, Match, as_uuid, finds
from rollouts.models import Rollout

_MAX_ROLLOUTS = 20


@finds(Kind.ROLLOUT)
def find_rollouts(project_id: UUID, text: str) -> Sequence[Match]:
    own = Rollout.objects.filter(project_id=project_id).order_by("-created_at")
    identity = as_uuid(text)
    rows = own.filter(pk=identity) if identity else own.filter(name=text)
    return [Match(Kind.ROLLOUT, str(row.pk), row.name) for row in rows[:_MAX_ROLLOUTS]]
