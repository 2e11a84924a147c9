"""project:read: facts about the project itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.tools.base import NoArguments, Tool, ToolContext
from core.errors import NotFoundError
from core.models import Project

SCOPE = "project:read"


def _get_project(context: ToolContext, arguments: NoArguments) -> Mapping[str, Any]:
    row = Project.objects.filter(pk=context.project_id).first()
    if row is None:
        raise NotFoundError("There is no such project.", code="project_not_found")
    return {"id": row.pk, "name": row.name, "created_at": row.created_at}


TOOLS: tuple[Tool, ...] = (
    Tool(
        name="get_project",
        scope=SCOPE,
        title="Project",
        description="The project this conversation is about: its id, name and when it was created.",
        arguments=NoArguments,
        run=_get_project,
    ),
)
