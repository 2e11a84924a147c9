from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from core.models import ApiKey, Project, Team


def find_project(named: str) -> Project | None:
    """`named` is an id or, if no project has that id, a name."""
    try:
        by_id = Project.objects.filter(pk=UUID(named)).first()
    except ValueError:
        by_id = None
    return by_id or Project.objects.filter(name=named).first()


def get_project(project_id: UUID) -> Project | None:
    return Project.objects.filter(pk=project_id).first()


def api_key_names(project_id: UUID, ids: Collection[int]) -> Mapping[int, str]:
    return dict(ApiKey.objects.for_project(project_id).filter(pk__in=ids).values_list("pk", "name"))


def team_names(project_id: UUID, ids: Collection[int]) -> Mapping[int, str]:
    return dict(Team.objects.for_project(project_id).filter(pk__in=ids).values_list("pk", "name"))
