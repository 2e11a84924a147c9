"""Queries of projects."""

from __future__ import annotations

from uuid import UUID

from core.models import Project


def find_project(named: str) -> Project | None:
    """Returns the project with this id or, when the text is no id of a project, with this name."""
    try:
        by_id = Project.objects.filter(pk=UUID(named)).first()
    except ValueError:
        by_id = None
    return by_id or Project.objects.filter(name=named).first()


def get_project(project_id: UUID) -> Project | None:
    return Project.objects.filter(pk=project_id).first()
