"""What the filters of a figure name: prompts, rollouts and API keys, which may be gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from django.db.models import Model, Q, QuerySet
from django.utils import timezone

from analytics.figures.filters import Filters, values_of
from core.models import ApiKey
from prompts.models import PromptConfig
from rollouts.models import Rollout


def _keys(project_id: UUID) -> QuerySet[ApiKey]:
    """Returns the keys that can still send requests."""
    lasting = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
    return ApiKey.objects.for_project(project_id).filter(lasting, revoked_at__isnull=True)


_SUBJECTS: Mapping[str, tuple[str, Callable[[UUID], QuerySet[Model]]]] = {
    "prompt_config_id": ("prompt", lambda project_id: PromptConfig.objects.for_project(project_id)),
    "rollout_id": ("rollout", lambda project_id: Rollout.objects.for_project(project_id)),
    "api_key_id": ("API key", _keys),
}


def missing_subject(project_id: UUID, filters: Filters) -> tuple[str, str] | None:
    """Returns the first filter that names something which is gone, and what that is; None if all is there."""
    for field, (word, rows) in _SUBJECTS.items():
        values = set(values_of(filters, field))
        if values and rows(project_id).filter(pk__in=values).count() < len(values):
            return field, word
    return None


def names_of_subjects(project_id: UUID, filters: Mapping[str, str]) -> dict[str, str]:
    """Returns the names of what the filters name, by filter; what is gone is left out."""
    found: dict[str, str] = {}
    for field, (_, rows) in _SUBJECTS.items():
        row = rows(project_id).filter(pk=filters[field]).first() if filters.get(field) else None
        if row is not None:
            found[field] = str(getattr(row, "name", row))
    return found
