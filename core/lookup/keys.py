from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.models import Q

from core.keys.services import KEY_PREFIX, VISIBLE_CHARACTERS
from core.lookup.registry import Kind, Match, finds
from core.models import ApiKey
from core.roles import Right

_MAX_KEYS = 20


@finds(Kind.API_KEY, Right.ADMINISTER)
def find_keys(project_id: UUID, text: str) -> Sequence[Match]:
    named = Q(name=text)
    if text.startswith(KEY_PREFIX) and len(text) >= VISIBLE_CHARACTERS:
        named |= Q(prefix=text[:VISIBLE_CHARACTERS])
    rows = ApiKey.objects.for_project(project_id).filter(named)[:_MAX_KEYS]
    return [Match(Kind.API_KEY, str(row.pk), f"{row.name} ({row.prefix}…)") for row in rows]
