from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from analytics.figures.filters import Filters, values_of
from core.models import ApiKey, Team
from integrations.registry import provider_title
from prompts.models import PromptConfig
from rollouts.models import Rollout


def _keys(project_id: UUID) -> QuerySet[ApiKey]:
    lasting = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
    return ApiKey.objects.for_project(project_id).filter(lasting, revoked_at__isnull=True)


class _Subject(NamedTuple):
    word: str
    rows: Callable[[UUID], QuerySet[Any]]


_SUBJECTS: Mapping[str, _Subject] = {
    "prompt_config_id": _Subject("prompt", lambda project_id: PromptConfig.objects.for_project(project_id)),
    "rollout_id": _Subject("rollout", lambda project_id: Rollout.objects.for_project(project_id)),
    "api_key_id": _Subject("API key", _keys),
    "team_id": _Subject("team", lambda project_id: Team.objects.for_project(project_id)),
}
_NOT = "not_"


def missing_subject(project_id: UUID, filters: Filters) -> tuple[str, str] | None:
    for field in filters:
        subject = _SUBJECTS.get(field.removeprefix(_NOT))
        ids = set(values_of(filters, field))
        if subject is not None and subject.rows(project_id).filter(pk__in=ids).count() < len(ids):
            return field, subject.word
    return None


def filter_words(project_id: UUID, filters: Filters) -> list[str]:
    return [
        f"{_label(field)} {_name(project_id, field, value)}" for field in filters for value in values_of(filters, field)
    ]


def _label(field: str) -> str:
    bare = field.removeprefix(_NOT)
    subject = _SUBJECTS.get(bare)
    word = subject.word if subject is not None else bare.removesuffix("_id").replace("_", " ")
    return word if bare == field else f"not {word}"


def _name(project_id: UUID, field: str, value: str) -> str:
    if field.removeprefix(_NOT) == "provider":
        return provider_title(value)
    subject = _SUBJECTS.get(field.removeprefix(_NOT))
    row = subject.rows(project_id).filter(pk=value).first() if subject is not None else None
    return value if row is None else str(getattr(row, "name", row))
