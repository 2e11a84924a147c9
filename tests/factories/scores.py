from __future__ import annotations

from typing import Any
from uuid import UUID

from analytics.models import Score
from analytics.scores.services import NewScore, record_score
from core.models import Project


def score_body(project_id: UUID, **values: Any) -> dict[str, Any]:
    return {"project_id": str(project_id), **score_item(**values)}


def score_item(**values: Any) -> dict[str, Any]:
    return {"request_id": "r-1", "score_name": "relevance", "score_value": 87.5, **values}


def make_score(project: Project, **values: Any) -> Score:
    return record_score(project_id=project.pk, score=NewScore(**score_item(**values)), actor="key:1").row
