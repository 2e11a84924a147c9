"""Which scores can be compared with each other. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class ScoreSource:
    """Scores that can be compared: of one online evaluation, by one version of its evaluator and one judge's model.
    `title` is `evaluator@version`."""

    evaluation_id: UUID
    version_id: UUID
    judge_model: str
    title: str
