"""Filters of figures: the file has the names of prompts, keys and teams, the tables have their ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from core.errors import ValidationError
from core.models import ApiKey, Team
from gateway.configuration.sections.base import told_apart
from prompts.models import PromptConfig

Filters = Mapping[str, str | Sequence[str]]
Rows = Callable[[UUID], Mapping[str, Any]]

_NOT = "not_"


def _keys(project_id: UUID) -> Mapping[str, ApiKey]:
    rows = ApiKey.objects.for_project(project_id).filter(revoked_at=None)
    return told_apart(rows.order_by("name", "pk"), lambda row: row.prefix)


def _teams(project_id: UUID) -> Mapping[str, Team]:
    return {row.name: row for row in Team.objects.for_project(project_id)}


def _prompts(project_id: UUID) -> Mapping[str, PromptConfig]:
    return {row.name: row for row in PromptConfig.objects.for_project(project_id)}


# By the filter of the tables: its name in the file, and the rows.
_SUBJECTS: Mapping[str, tuple[str, Rows]] = {
    "api_key_id": ("api_key", _keys),
    "team_id": ("team", _teams),
    "prompt_config_id": ("prompt", _prompts),
}
_BY_NAME = {name: (field, rows) for field, (name, rows) in _SUBJECTS.items()}


def with_names(project_id: UUID, filters: Filters) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field, value in filters.items():
        bare = field.removeprefix(_NOT)
        named, rows = _SUBJECTS.get(bare, (bare, None))
        if rows is not None:
            names = {str(row.pk): name for name, row in rows(project_id).items()}
            ids = [value] if isinstance(value, str) else list(value)
            if all(one in names for one in ids):
                found[field.replace(bare, named)] = _one_or_all([names[one] for one in ids])
                continue
        found[field] = _one_or_all(value)
    return found


def with_ids(project_id: UUID, filters: Filters) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field, value in filters.items():
        bare = field.removeprefix(_NOT)
        if bare not in _BY_NAME:
            found[field] = value
            continue
        stored, rows = _BY_NAME[bare]
        there = rows(project_id)
        names = [value] if isinstance(value, str) else list(value)
        for name in names:
            if name not in there:
                problem = f"The project has no {bare.replace('_', ' ')} {name!r}."
                raise ValidationError(f"filters.{field}: {problem}", details={f"filters.{field}": [problem]})
        found[field.replace(bare, stored)] = _one_or_all([str(there[name].pk) for name in names])
    return found


def plain_filters(given: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, value in given.items():
        texts = [_text(one) for one in (value if isinstance(value, list) else [value]) if one not in ("", None)]
        if texts:
            found[name] = _one_or_all(texts)
    return found


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _one_or_all(values: str | Sequence[str]) -> Any:
    if isinstance(values, str):
        return values
    return values[0] if len(values) == 1 else list(values)
