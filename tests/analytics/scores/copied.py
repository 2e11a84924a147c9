"""Reads the copies of scores and feedback in ClickHouse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from core.models import Project


@dataclass(frozen=True)
class Copy:
    id: UUID
    request_id: str
    score_value: float
    score_label: str
    request_known: bool
    model: str
    prompt_version: int
    variant: str


@dataclass(frozen=True)
class Count:
    stored: int


def copies(project: Project) -> list[Copy]:
    sql = (
        "SELECT id, request_id, score_value, score_label, request_known, model, prompt_version, variant"
        " FROM scores FINAL WHERE project_id = {project:UUID} ORDER BY score_value, id"
    )
    return client.query(sql, {"project": project.pk}, row=Copy, name="test")


def values(project: Project) -> list[float]:
    return [copy.score_value for copy in copies(project)]


def physical() -> list[int]:
    """Returns the rows of scores and feedback whose content is still in the store, withdrawn or not."""
    sql = "SELECT (SELECT count() FROM {table:Identifier} WHERE is_deleted = 0) AS stored"
    return [client.query(sql, {"table": table}, row=Count, name="test")[0].stored for table in ("scores", "feedback")]


def feedback_copies(project: Project) -> list[tuple[Any, ...]]:
    sql = (
        "SELECT session_id, score, has_text FROM feedback FINAL WHERE project_id = {project:UUID}"
        " ORDER BY session_id, score"
    )
    return client.execute(sql, {"project": project.pk})
