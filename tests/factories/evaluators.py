from __future__ import annotations

from typing import Any
from uuid import uuid4

from analytics.evaluators.services import NewVersion, create_evaluator
from analytics.models import Evaluator
from core.models import Project


def make_evaluator(project: Project, kind: str = "contains", name: str = "", **definition: Any) -> Evaluator:
    return create_evaluator(
        project_id=project.pk,
        name=name or f"{kind}-{uuid4().hex[:8]}",
        kind=kind,
        first=NewVersion(definition or ({"value": "seven"} if kind == "contains" else {})),
        actor="user:ann",
    )
