"""Queries of projects and of the names of their API keys and teams."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from core.models import ApiKey, Project, Team


def find_project(named: str) -> Project | None:
    """Returns the project with this id or, when the text is no id of a project, with this name."""
    try:
        by_id = Project.objects.filter(pk=UUID(named)).first()
    except ValueError:
        by_id = None
    return by_id or Project.objects.filter(name=named).first()


def get_project(project_id: UUID) -> Project | None:
    return Project.objects.filter(pk=project_id).first()


def api_key_names(project_id: UUID, ids: Collection[int]) -> Mapping[int, str]:
    """Returns the names of the project's API keys by id, including revoked ones. Ids that do not exist are left out."""
    return dict(ApiKey.objects.for_project(project_id).filter(pk__in=ids).values_list("pk", "name"))


def team_names(project_id: UUID, ids: Collection[int]) -> Mapping[int, str]:
    """Returns the names of the project's teams by id. Ids that do not exist are left out."""
    return dict(Team.objects.for_project(project_id).filter(pk__in=ids).values_list("pk", "name"))
